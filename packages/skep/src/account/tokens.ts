import type { KeptSignIn, SignInStore, TokenSource } from '@skep/auth/sign-in/port.ts';
import { isFresh } from '@skep/auth/sign-in/refresh.ts';
import { createSignInFetch } from '@skep/auth/sign-in/sign-in-fetch.ts';
import { createTokenSource } from '@skep/auth/sign-in/token-source.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock, type Clock } from '@skep/core/time/clock.ts';
import type { AppConfig } from '../config/app-config.ts';
import type { SecretsSurroundings } from '../secrets/provider.ts';
import { signInStore } from '../secrets/sign-in-store.ts';
import { parseHttpUrl } from '@skep/core/fetch/http-url.ts';
import type { Proof } from './refusal.ts';
import { isAt, splitAddress } from './registry-address.ts';

/** What proving who one is to a registry needs to know of the command. */
export interface AccountSurroundings extends SecretsSurroundings {
  readonly program: { readonly version: string };
  readonly clock?: Clock;
  /** False for who cannot wait: a token that has ended then counts as none. */
  readonly renewsTokens?: boolean;
  /** How long other commands may be renewing the same sign-in, milliseconds; 10 s by default. */
  readonly patienceMs?: number;
}

/** Tokens for the requests to one server. */
export interface RegistryTokens extends Pick<TokenSource, 'token' | 'refused'> {
  readonly proof: Exclude<Proof, 'nothing'>;
  /** A refresh under way goes on. */
  readonly close: () => void;
}

/** For pipelines: a file with a token, which is read anew for each command. */
const TOKEN_FILE = 'SKEP_TOKEN_FILE';
/** The address of the registry that the token of the file is for. */
export const REGISTRY = 'SKEP_REGISTRY';
const MAX_TOKEN_BYTES = 64 * 1024;
/** RFC 6750 §2.1. */
const B64_TOKEN = /^[\w.~+/-]+=*$/u;

/** Nobody waits as long for a list of servers as a workload may for its tokens. */
const LOCK_MS = 10_000;
const PATIENCE = {
  initialMs: 500,
  maxMs: 2_000,
  maxElapsedMs: 5_000,
  maxTries: 3,
  tickMs: 600_000,
  maxRetryingMs: 600_000,
};

/** The key under which the sign-in to a server is kept. */
export const signInOfRegistry = (server: string): string => `registry ${server}`;

/** For which servers there is something to show. */
export interface Trusted extends Pick<AppConfig, 'registryAuthServer'> {
  /** The address that the command names. */
  readonly named?: string | undefined;
}

/**
 * Who asks at an address: the token of `SKEP_TOKEN_FILE`, else the sign-in to its server; undefined where there is none for it.
 * The file's token is for the server of the configured sign-in, of the address that the command names, and of `SKEP_REGISTRY`
 * (decision 0392). Nothing is read yet.
 */
export async function tokensFor(
  address: string,
  { registryAuthServer: server, named }: Trusted,
  around: AccountSurroundings,
): Promise<RegistryTokens | undefined> {
  const file = tokenFileFor(address, { registryAuthServer: server, named }, around.env);
  if (file !== undefined) return tokensOfFile(file);
  if (server === undefined || !isAt(address, server)) return undefined;
  const { clock = systemClock, patienceMs: waitMs = LOCK_MS } = around;
  if (around.renewsTokens === false) return tokensKept(server, signInStore(around), clock);
  const fetch = createSignInFetch();
  const source = createTokenSource(signInOfRegistry(server), signInStore(around, { waitMs }), {
    fetch,
    clock,
    log: silentLog,
    random: Math.random,
    patience: PATIENCE,
  });
  return {
    proof: 'sign-in',
    token: source.token,
    refused: source.refused,
    close: () => void source.close().then(() => fetch.close()),
  };
}

/** The path of `SKEP_TOKEN_FILE`, where its token is for an address; it then counts before a sign-in. */
export function tokenFileFor(
  address: string,
  { registryAuthServer, named }: Trusted,
  env: AccountSurroundings['env'],
): string | undefined {
  const isOf = (text = ''): boolean => {
    const url = parseHttpUrl(text);
    return url !== undefined && isAt(address, splitAddress(url).server);
  };
  return [registryAuthServer, named, env[REGISTRY]].some(isOf) ? env[TOKEN_FILE] || undefined : undefined;
}

function tokensOfFile(file: string): RegistryTokens {
  const token = async (): Promise<string> => {
    const text = (await readText(file, { maxBytes: MAX_TOKEN_BYTES, what: 'token file' })).trim();
    if (B64_TOKEN.test(text)) return text;
    throw new SkepError('auth/not-signed-in', {
      message: `the file of ${TOKEN_FILE} holds no token`,
      hint: 'put the token alone into it, on one line',
    });
  };
  return {
    proof: 'file',
    token,
    // Whoever writes the file may have renewed it meanwhile.
    async refused(before) {
      const now = await token();
      return now === before ? undefined : now;
    },
    close: () => undefined,
  };
}

/** The token that is kept, where it can still be used. */
function tokensKept(server: string, store: Pick<SignInStore, 'read'>, clock: Clock): RegistryTokens {
  return {
    proof: 'sign-in',
    async token() {
      const kept = await store.read(signInOfRegistry(server));
      if (kept?.accessToken !== undefined && isFresh(kept, clock.now())) return kept.accessToken;
      throw new SkepError('auth/not-signed-in');
    },
    refused: async () => undefined,
    close: () => undefined,
  };
}

/** Tokens of a sign-in that is not kept yet. */
export function tokensOf({ accessToken }: KeptSignIn): RegistryTokens {
  return {
    proof: 'sign-in',
    token: async () => accessToken ?? '',
    refused: async () => undefined,
    close: () => undefined,
  };
}
