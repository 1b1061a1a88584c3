import type { KeptSignIn, Person, SignInTarget, SignInWay } from '@skep/auth/sign-in/port.ts';
import { createSignInFetch } from '@skep/auth/sign-in/sign-in-fetch.ts';
import { signIn } from '@skep/auth/sign-in/sign-in.ts';
import { withdrawBeside } from '@skep/auth/sign-in/sign-out.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { createClient } from '@skep/core/fetch/client.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';

import { signInStore } from '../secrets/sign-in-store.ts';
import { agreeTo } from './agree-to-login.ts';
import { askAccount, type Account } from './account.ts';
import { openRegistryServer } from './ask-registry.ts';
import { mayBePrivateBy, refuseHidden } from './private-issuer.ts';
import { readLoginDocument, type LoginDocument } from './login-document.ts';
import { shownServer, splitAddress } from './registry-address.ts';
import type { SaidLogin, SomeLogin } from './registry-in-use.ts';
import { tellOtherClient } from './tell-other-client.ts';
import { requireProtected } from './signed-client.ts';
import { signInOfRegistry, tokensOf, type AccountSurroundings } from './tokens.ts';

/** What the person said, now or before; the registry says the rest. */
export interface LoginWish extends SaidLogin {
  readonly way: Exclude<SignInWay, 'assertion'>;
  readonly clientSecret?: string | undefined;
  readonly callbackPort?: number | undefined;
  /** How long the person may take, where that was said. */
  readonly timeoutMs: number | undefined;
  readonly allowPrivate: boolean;
}

/** How somebody signed in, and who that is. */
export interface SignedIn {
  readonly server: string;
  /** What the person said, and agreed to. */
  readonly login: SaidLogin;
  readonly kept: KeptSignIn;
  readonly account: Account;
}

interface Around extends AccountSurroundings {
  readonly person: Person;
  readonly terminal: Pick<Terminal, 'err'>;
  /** Has the person agree; absent where nobody can be asked. */
  readonly confirm?: ((question: string) => Promise<boolean>) | undefined;
  /** Asks which of several; absent where nobody can be asked. */
  readonly choose?: ((what: string, choices: readonly string[]) => Promise<string>) | undefined;
}

const PERSON_MS = 300_000;
const DOCUMENT_MS = 10_000;
const MAX_DOCUMENT_BYTES = 256 * 1024;

/**
 * Signs in to the server of an address, and keeps that once the server has accepted a token of it; what was kept before
 * stays until then. Fails with the codes `auth/…`, with `secrets/*` before anybody is asked where nothing can be kept, as
 * `agreeTo` does, with `catalog-source/refused` where others could read and change what is said, and as asking the server does.
 */
export async function signInToRegistry(address: URL, wish: LoginWish, around: Around): Promise<SignedIn> {
  requireProtected(address.href);
  const found = await documentAt(address, wish, around);
  const server = found?.server ?? splitAddress(address).server;
  const login = await chooseLogin(found, wish, around);
  const store = signInStore(around);
  await store.ready();
  const key = signInOfRegistry(server);
  const { issuer, clientId, audience, scopes } = wish;
  let agreed: string | undefined;
  const fetch = createSignInFetch();
  try {
    if (wish.issuer === undefined) await refuseHidden(login.issuer, server, fetch);
    const target = {
      ...targetOf(server, login, { ...wish, isAnnounced: found !== undefined }),
      mayBePrivate: await mayBePrivateBy(wish, server, fetch),
    };
    const former = await store.read(key).catch(() => undefined);
    const kept = await signIn(target, wish.way, {
      fetch,
      clock: around.clock ?? systemClock,
      log: silentLog,
      person: around.person,
      signal: around.signal,
      timeoutMs: wish.timeoutMs ?? (wish.way === 'browser' ? PERSON_MS : undefined),
      kept: former,
      async agree(asked) {
        agreed = await agreeTo({ ...login, ...asked, server }, wish, around);
      },
    });
    let replaced: KeptSignIn | undefined;
    let account: Account;
    try {
      account = await accountOf(server, kept, wish, around);
      await store.change(key, async (before) => {
        replaced = before;
        return kept;
      });
    } catch (error) {
      await withdrawBeside(kept, former, { fetch, log: silentLog });
      throw error;
    }
    tellOtherClient(login.clientId, kept, around.terminal);
    if (replaced !== undefined) await withdrawBeside(replaced, kept, { fetch, log: silentLog });
    return { server, login: { issuer, clientId, audience, scopes, agreed }, kept, account };
  } finally {
    fetch.close();
  }
}

async function documentAt(
  address: URL,
  { allowPrivate }: LoginWish,
  { program, signal }: Around,
): Promise<LoginDocument | undefined> {
  const client = createClient({
    timeoutMs: DOCUMENT_MS,
    maxBytes: MAX_DOCUMENT_BYTES,
    allowPrivate,
    userAgent: `skep/${program.version}`,
  });
  try {
    return await readLoginDocument(address, client, signal);
  } catch (error) {
    if (!hasCode(error, 'fetch/refused-address')) throw error;
    const hint = 'if the registry is meant to be there, give --allow-private-ip';
    throw new SkepError(error.code, { message: error.message, hint, detail: error.detail, cause: error });
  } finally {
    await client.close();
  }
}

async function chooseLogin(
  found: LoginDocument | undefined,
  wish: LoginWish,
  { choose }: Around,
): Promise<SomeLogin> {
  const offered = found?.logins ?? [];
  const [first] = offered;
  const issuer =
    wish.issuer ??
    (offered.length > 1
      ? await choose?.(
          'Identity provider',
          offered.map((one) => one.issuer),
        )
      : first?.issuer);
  if (issuer === undefined && offered.length > 1) {
    throw new SkepError('usage/missing-argument', {
      message: `there are several identity providers: ${offered.map((one) => one.issuer).join(', ')}`,
      hint: 'choose one with --issuer',
    });
  }
  const chosen = offered.find((one) => one.issuer === issuer) ?? (issuer === undefined ? {} : { issuer });
  const { clientId, audience, scopes } = wish;
  return {
    ...chosen,
    ...(clientId !== undefined && { clientId }),
    ...(audience !== undefined && { audience }),
    ...(scopes !== undefined && { scopes }),
  };
}

/**
 * An audience is asked for in both ways that there are: as `audience`, and where it is an address as `resource` (RFC 8707).
 * Without one, neither: some providers refuse a resource that they do not know (decision 0357). What a server says in RFC 9728
 * metadata alone is said for clients of MCP, which name the server as the resource.
 */
function targetOf(
  server: string,
  login: SomeLogin,
  wish: LoginWish & { readonly isAnnounced: boolean },
): SignInTarget {
  const { issuer, clientId, scopes, audience } = login;
  const none = wish.isAnnounced || issuer !== undefined ? '' : undefined;
  return {
    resource: server,
    issuer,
    clientId,
    clientSecret: wish.clientSecret,
    scopes,
    resourceIndicator: audience !== undefined && URL.canParse(audience) ? audience : none,
    ...(audience === undefined ? {} : { authorizeParams: { audience } }),
    assumesPkce: true,
    callbackPort: wish.callbackPort,
  };
}

/** Who the server takes the person for; a sign-in that it does not accept is worth nothing. */
async function accountOf(
  server: string,
  kept: KeptSignIn,
  { allowPrivate }: LoginWish,
  { program, signal }: Around,
): Promise<Account> {
  const { version } = program;
  const registry = openRegistryServer({ server, tokens: tokensOf(kept), allowPrivate, version });
  try {
    return await askAccount(registry, signal);
  } catch (cause) {
    if (!(cause instanceof SkepError) || cause.code !== 'auth/sign-in-ended') throw cause;
    throw new SkepError('auth/sign-in-refused', {
      message: `${shownServer(server)} does not accept what ${kept.issuer} gave`,
      hint: 'ask its operator for the scopes and the audience: --scopes, --audience',
      cause,
    });
  } finally {
    registry.close();
  }
}
