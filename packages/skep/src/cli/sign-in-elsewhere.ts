import type { KeptSignIn, MayBePrivate, Person, SignInWay } from '@skep/auth/sign-in/port.ts';
import type { Demand } from '@skep/auth/sign-in/probe.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { tellOtherClient } from '../account/tell-other-client.ts';
import { patienceOf, requireTls, signInTarget, type RemoteAuthConfig } from '../run-config/remote-auth.ts';
import type { SecretsSurroundings } from '../secrets/provider.ts';
import { forgetSignIn, signInOfWorkload, signInStore } from '../secrets/sign-in-store.ts';
import { hasBrowser, personAt, type AtTerminal } from './person.ts';

/** What signing in to the server of a workload stands on. */
export type SignInAround = SecretsSurroundings & AtTerminal;

export interface Elsewhere {
  /** Of the workload. */
  readonly name: string;
  readonly url: string;
  readonly auth: RemoteAuthConfig;
  readonly clientSecret: string | undefined;
  /** Absolute; PEM. */
  readonly caPath: string | undefined;
  readonly mayBePrivate: MayBePrivate;
}

/** What the server wants of whoever asks it (docs/behaviour/run.md#remote-sign-in). */
export async function demandOf(
  { url, caPath, mayBePrivate }: Pick<Elsewhere, 'url' | 'caPath' | 'mayBePrivate'>,
  { signal }: Pick<SignInAround, 'signal'>,
): Promise<Demand> {
  const [{ probe }, fetch] = await Promise.all([import('@skep/auth/sign-in/probe.ts'), openFetch(caPath)]);
  try {
    return await probe({ resource: url, mayBePrivate }, { fetch, log: silentLog, signal });
  } finally {
    fetch.close();
  }
}

export interface HowToSignIn {
  /** `browser` becomes the device grant where there is no browser, and the server has that. */
  readonly way: SignInWay;
  /** What the server said when it was asked without a token. */
  readonly challenge?: string | undefined;
  /** Before anything is kept; where that or keeping fails, what was given is withdrawn, unless others may end with it. */
  readonly beforeKept?: (() => Promise<void>) | undefined;
}

/**
 * Signs a person, or a service, in to the server of a workload, and keeps what comes of it. What was kept before stays until
 * then. Fails with `usage/invalid-value` for a server that could be overheard, with `auth/*`, and as the store does.
 */
export async function signInElsewhere(
  { name, url, auth, clientSecret, caPath, mayBePrivate }: Elsewhere,
  { way, challenge, beforeKept }: HowToSignIn,
  around: SignInAround,
): Promise<KeptSignIn> {
  requireTls(new URL(url), 'signing in');
  const store = signInStore(around);
  await store.ready();
  const key = signInOfWorkload(name);
  const [{ signIn }, { withdrawBeside }, fetch] = await Promise.all([
    import('@skep/auth/sign-in/sign-in.ts'),
    import('@skep/auth/sign-in/sign-out.ts'),
    openFetch(caPath),
  ]);
  try {
    const skipBrowser = auth.skip_browser ?? false;
    const person = personAt(around, { skipBrowser });
    const services = {
      fetch,
      clock: systemClock,
      log: silentLog,
      person,
      signal: around.signal,
      timeoutMs: patienceOf(auth),
      challenge,
      kept: await store.read(key).catch(unlessDamaged),
    };
    const target = { ...signInTarget(url, auth, clientSecret), mayBePrivate };
    const isBlind = way === 'browser' && !skipBrowser && !hasBrowser(around);
    const kept = isBlind
      ? await signInBlind((how, by) => signIn(target, how, { ...services, person: by }), person)
      : await signIn(target, way, services);
    let former = services.kept;
    try {
      await beforeKept?.();
      await store.change(key, async (found) => {
        former = found;
        return kept;
      });
    } catch (error) {
      // What was kept although keeping failed in the end stays good.
      const stored = await store.read(key).catch(() => kept);
      if (stored?.accessToken !== kept.accessToken) await withdrawBeside(kept, former, services);
      throw error;
    }
    tellOtherClient(target.clientId, kept, around.terminal);
    if (former !== undefined) await withdrawBeside(former, kept, services);
    return kept;
  } catch (error) {
    throw withNextStep(error);
  } finally {
    fetch.close();
  }
}

/** By a code; by an address, where the server gave no code to anybody (decision 0353). */
async function signInBlind(
  signIn: (way: 'device' | 'browser', person: Person) => Promise<KeptSignIn>,
  person: Person,
): Promise<KeptSignIn> {
  let isShown = false;
  const watched: Person = {
    ...person,
    showCode(...code) {
      isShown = true;
      person.showCode?.(...code);
    },
  };
  try {
    return await signIn('device', watched);
  } catch (error) {
    if (isShown || !(error instanceof SkepError) || !error.code.startsWith('auth/')) throw error;
    return signIn('browser', person);
  }
}

/**
 * What is saved of a sign-in: the secret of a client is for the issuer that it was shown to first (decision 0384). That nobody named
 * it is saved too, for a person may name a private address and a server may not.
 */
export function savedAuth(
  auth: RemoteAuthConfig,
  { issuer }: Pick<KeptSignIn, 'issuer'>,
  clientSecret: string | undefined,
): RemoteAuthConfig {
  return clientSecret === undefined || auth.issuer || auth.token_url
    ? auth
    : { ...auth, issuer, issuer_found: true };
}

async function openFetch(caPath: string | undefined) {
  const { createSignInFetch } = await import('@skep/auth/sign-in/sign-in-fetch.ts');
  return createSignInFetch(caPath === undefined ? {} : { ca: await readCaBundle(caPath) });
}

/** A new sign-in takes the place of one that nobody can read. */
function unlessDamaged(error: unknown): undefined {
  if (!hasCode(error, 'secrets/damaged')) throw error;
}

/** Flags that help, by what went wrong. */
const NEXT: Partial<Readonly<Record<SkepError['code'], string>>> = {
  'auth/no-sign-in':
    'give a token with --remote-auth-bearer-token-file or SKEP_REMOTE_AUTH_BEARER_TOKEN, or name the issuer with --remote-auth-issuer',
  'auth/client-needed': 'register a client there and give its id with --remote-auth-client-id',
  'auth/client-refused': 'check --remote-auth-client-id and --remote-auth-client-secret-file',
  'auth/callback-port': 'end what uses the port, or give another with --remote-auth-callback-port',
  'auth/sign-in-timeout': 'try again; --remote-auth-timeout gives more time',
};

function withNextStep(error: unknown): unknown {
  const hint = error instanceof SkepError ? NEXT[error.code] : undefined;
  if (!(error instanceof SkepError) || hint === undefined) return error;
  return new SkepError(error.code, { message: error.message, hint, cause: error });
}

/**
 * Withdraws and forgets what is kept of a sign-in. `kept-there`: its authorization server did not withdraw all of it. Fails as the
 * store does.
 */
export async function signOutElsewhere(
  { name, caPath }: Pick<Elsewhere, 'name' | 'caPath'>,
  around: SecretsSurroundings,
): Promise<'out' | 'was-out' | 'kept-there'> {
  // Taken out first, under its lock: a refresh meanwhile would leave tokens that nobody withdraws.
  const kept = await forgetSignIn(name, around);
  if (kept === undefined) return 'was-out';
  const [{ signOut }, fetch] = await Promise.all([
    import('@skep/auth/sign-in/sign-out.ts'),
    openFetch(caPath),
  ]);
  try {
    const isOut = await signOut(kept, { fetch, log: silentLog, signal: around.signal });
    return isOut ? 'out' : 'kept-there';
  } finally {
    fetch.close();
  }
}

/**
 * Forgets the sign-in of a workload that is no more, and withdraws it where nothing else can end with it (decision 0393). Fails as
 * the store does.
 */
export async function dropSignIn(
  { name, caPath }: Pick<Elsewhere, 'name' | 'caPath'>,
  around: SecretsSurroundings,
): Promise<void> {
  const kept = await forgetSignIn(name, around);
  if (kept?.client.registered === undefined) return;
  const { withdrawBeside } = await import('@skep/auth/sign-in/sign-out.ts');
  const fetch = await openFetch(caPath).catch(() => undefined);
  if (fetch === undefined) return;
  try {
    await withdrawBeside(kept, undefined, { fetch, log: silentLog });
  } finally {
    fetch.close();
  }
}
