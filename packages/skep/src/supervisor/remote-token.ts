import { tokenChallenge } from '@skep/auth/sign-in/challenge.ts';
import type { KeptSignIn, SignInState, SignInStore } from '@skep/auth/sign-in/port.ts';
import { createSignInFetch } from '@skep/auth/sign-in/sign-in-fetch.ts';
import { createTokenSource, type RefreshPatience } from '@skep/auth/sign-in/token-source.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import type { RemoteToken } from '@skep/proxy/backend/backend.ts';
import { proxyLimits } from '../run-config/proxy-limits.ts';
import { hasBearerToken, isWithin, readSecretFile, requireTls } from '../run-config/remote-auth.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { REMOTE_BEARER_TOKEN } from '../secrets/reference.ts';
import { signInOfWorkload } from '../secrets/sign-in-store.ts';

/** Opens the store of sign-ins, which nobody needs who signs in nowhere. */
export type OpenSignIns = () => Promise<SignInStore>;

export interface RemoteTokenDeps {
  readonly signIns: OpenSignIns;
  readonly secretOf: (target: string) => Promise<string | undefined>;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: (min: number, max: number) => number;
}

/** Between two looks at the store while nobody is signed in. */
const LOOK_MS = 10_000;

/**
 * What the proxy of a workload shows its server elsewhere: a token that somebody gave, or that of a sign-in, which is refreshed
 * and kept. No browser is opened for it. Fails with `file/*`, with `usage/invalid-value` where a sign-in could be overheard, and as the
 * store of secrets does.
 */
export async function openRemoteToken(config: RunConfig, deps: RemoteTokenDeps): Promise<RemoteToken> {
  return hasBearerToken(config) ? givenToken(config, deps) : signedInToken(config, deps);
}

/** As it was given; one in a file may be replaced there at any time. */
async function givenToken(config: RunConfig, { secretOf }: RemoteTokenDeps): Promise<RemoteToken> {
  const file = config.remote_auth_config?.bearer_token_file;
  const read = async (): Promise<string> => {
    const text = file ? await readSecretFile(file, 'bearer token') : await secretOf(REMOTE_BEARER_TOKEN);
    const token = text?.trim() ?? '';
    if (/^[\u0021-\u007e]+$/u.test(token)) return token;
    throw new SkepError('usage/invalid-value', {
      message: `the bearer token of "${config.name}" cannot be sent`,
    });
  };
  let token = await read();
  return {
    token: () => Promise.resolve(token),
    headersFor: async () => ({ authorization: `Bearer ${token}` }),
    async refused(refused) {
      if (refused !== token) return token;
      token = file ? await read().catch(() => token) : token;
      return token === refused ? undefined : token;
    },
    // Whether it is good only the server says, each time.
    state: () => 'running',
    follow() {},
    lacking: async () => undefined,
    advice: `remove it with skep rm ${config.name}, and run it with a new token`,
    async close() {},
  };
}

async function signedInToken(config: RunConfig, deps: RemoteTokenDeps): Promise<RemoteToken> {
  const { name, remote_url: url = '', skep_ca_bundle: bundle } = config;
  requireTls(new URL(url), `the sign-in of "${name}"`);
  const { clock, log, random } = deps;
  const fetch = createSignInFetch(bundle ? { ca: await readCaBundle(bundle) } : {});
  let tell = (_state: SignInState): void => {};
  let looking: Timer | undefined;
  let isClosed = false;
  // Somebody may sign in with a command, and nobody has to call for it to be noticed.
  const look = (): void => {
    looking?.cancel();
    if (isClosed) return;
    looking = clock.after(LOOK_MS, () => {
      source.token().then(
        () => tell('running'),
        () => source.state() === 'unauthenticated' && look(),
      );
    });
  };
  const source = createTokenSource(signInOfWorkload(name), forOrigin(config, await deps.signIns()), {
    fetch,
    clock,
    log,
    random: () => random(0, 999) / 1_000,
    // A service asks for its next token as for the first one.
    target: {
      authorizeParams: config.remote_auth_config?.oauth_params,
      scopeParamName: config.remote_auth_config?.scope_param_name || undefined,
    },
    patience: patienceIn(config),
    onState(state) {
      looking?.cancel();
      if (state === 'unauthenticated') look();
      tell(state);
    },
  });
  const told = { at: -Infinity };
  const moreThan = async (token: string, challenge: string): Promise<string | undefined> => {
    const wanted = await tokenChallenge(challenge);
    // Any other 403 says nothing of the token.
    if (wanted?.error !== 'insufficient_scope') return undefined;
    // What it wants is asked for when a person signs in the next time.
    const next = await source.refused(token, challenge);
    if (next === undefined) tellLacking({ name, log, clock, told });
    return next;
  };
  return {
    ...source,
    follow: (next) => void (tell = next),
    lacking: (token, challenge) =>
      moreThan(token, challenge).catch((error: unknown) => {
        log.warn({ err: error, workload: name }, 'what the server wants more could not be kept');
        return undefined;
      }),
    advice: `skep auth login ${name}`,
    async close() {
      isClosed = true;
      looking?.cancel();
      // What a refresh under way gets is kept first: the old refresh token may be worth nothing by now.
      await source.close();
      fetch.close();
    },
  };
}

function patienceIn(config: RunConfig): RefreshPatience {
  const limits = proxyLimits(config);
  return {
    initialMs: limits.tokenRetryMs,
    maxMs: limits.tokenMaxRetryMs,
    maxElapsedMs: limits.tokenMaxElapsedMs,
    maxTries: limits.tokenMaxTries,
    tickMs: limits.tokenTickMs,
    maxRetryingMs: limits.tokenMaxRetryingMs,
  };
}

/** A workload whose address has changed since is signed in to nobody: a token is for one server. */
function forOrigin({ remote_url: url = '' }: RunConfig, store: SignInStore): SignInStore {
  const own = (kept: KeptSignIn | undefined): KeptSignIn | undefined =>
    kept !== undefined && isFor(kept, new URL(url)) ? kept : undefined;
  return {
    read: async (key) => own(await store.read(key)),
    change: (key, next) =>
      store.change(key, async (kept) => {
        const changed = await next(own(kept));
        return own(kept) === undefined ? kept : changed;
      }),
  };
}

/** A host may have many servers, with tokens of their own. */
function isFor({ resource, resourceIndicator = resource }: KeptSignIn, url: URL): boolean {
  if (URL.parse(resource)?.origin !== url.origin) return false;
  return isWithin(url, resource) || isWithin(url, resourceIndicator);
}

interface Telling {
  readonly name: string;
  readonly log: Log;
  readonly clock: Pick<Clock, 'now'>;
  /** When it was told last. */
  readonly told: { at: number };
}

/** At most so often; a server may want something else with every answer. */
const TELL_MS = 3_600_000;

/**
 * Says which command gets the scopes that a server wants; nobody is asked in the background. The command knows them, and what a
 * server writes is nothing to paste into a shell.
 */
function tellLacking({ name, log, clock, told }: Telling): void {
  if (clock.now() - told.at < TELL_MS) return;
  told.at = clock.now();
  log.warn(
    { workload: name },
    `the server wants more than the token allows: skep auth login ${name} asks for it`,
  );
}
