import { hash } from 'node:crypto';
import { join } from 'node:path';
import type { KeptSignIn, SignInStore } from '@skep/auth/sign-in/port.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { withLock } from '@skep/core/files/lock.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { listOf, members, readAs, text } from '@skep/core/settings/shape.ts';
import { chosenKind, openProviderToKeep } from './open-provider.ts';
import type { ProviderKind, SecretsProvider, SecretsSurroundings } from './provider.ts';
import { isSignInSecret, signInSecret } from './reference.ts';

/** Whoever changes a sign-in may be asking a token endpoint, or waiting for a person. */
const LOCK_MS = 120_000;

/** What every release finds in a sign-in that it can use; nobody but Skep writes there. */
const signInShape = members({
  version: (value, fail) => (value === 1 ? value : fail('is of a later release')),
  resource: text,
  issuer: text,
  tokenEndpoint: text,
  client: members({ id: text, authMethod: text }),
  scopes: listOf(text),
});

/** The key of what the proxy of a workload signs in with. */
export const signInOfWorkload = (name: string): string => `workload ${name}`;

/** Where sign-ins are kept, and whether they can be. */
export interface LastingSignInStore extends SignInStore {
  /**
   * Fails as `change` does where nothing can be kept: to be asked before a person is. Where the store is opened with a
   * password that nobody has been asked for yet, this asks.
   */
  readonly ready: () => Promise<void>;
  /** All whose key is the one that `keyOf` makes of them; none where the place cannot tell. Fails as `read`. */
  readonly list: (keyOf: (kept: KeptSignIn) => string) => Promise<readonly KeptSignIn[]>;
}

/**
 * Sign-ins among the secrets of the user, each an entry of its own and sealed as all of them. Whoever changes one holds a
 * lock that other processes wait for, and reads it again under it. `read` finds nothing where no place for secrets was
 * chosen. `waitMs` is how long others may hold one, and the signal ends that waiting alone. Both fail as `openProvider` does, and with `secrets/damaged`; `change` also with `file/locked`, and with
 * `secrets/read-only` where nothing can be kept.
 */
export function signInStore(
  around: SecretsSurroundings,
  { waitMs = LOCK_MS }: { readonly waitMs?: number | undefined } = {},
): LastingSignInStore {
  const { places, signal } = around;
  // What a server gave is kept also by a command that is told to end meanwhile: the old refresh token may be worth nothing by now.
  const provider = openOnce({ ...around, signal: new AbortController().signal });
  const keeper = async (): Promise<Keeper> => {
    const { kind, get, change } = await provider();
    if (change) return { get, change };
    throw new SkepError('secrets/read-only', {
      message: `a sign-in cannot be kept: the ${kind} secrets provider only reads`,
      hint: 'choose another place with skep secret setup',
    });
  };
  return {
    async read(key) {
      if ((await chosenKind(around)) === undefined) return undefined;
      return readIn(await provider(), key);
    },
    async change(key, next) {
      const lock = join(places.secretLocksDir, `${lockName(key)}.lock`);
      return withLock(lock, { waitMs, what: `the sign-in of ${key}`, signal }, async () => {
        const keeping = await keeper();
        const text = await keeping.get(signInSecret(key));
        // What cannot be read is of no use to whoever signs in anew.
        const before = text === undefined ? undefined : signInIn(text);
        const after = await next(before);
        if (after === undefined && text !== undefined)
          await keeping.change((secrets) => void secrets.delete(signInSecret(key)));
        else if (after !== undefined && after !== before)
          await keeping.change((secrets) => void secrets.set(signInSecret(key), JSON.stringify(after)));
        return after;
      });
    },
    async ready() {
      await (await keeper()).get(signInSecret(''));
    },
    async list(keyOf) {
      if ((await chosenKind(around)) === undefined) return [];
      const { get, list } = await provider();
      const names = ((await list?.()) ?? []).map(({ name }) => name).filter(isSignInSecret);
      const all = await Promise.all(
        names.map(async (name) => [name, signInIn((await get(name)) ?? '')] as const),
      );
      return all.flatMap(([name, kept]) => (kept && signInSecret(keyOf(kept)) === name ? [kept] : []));
    },
  };
}

/** Ctrl-C ends what somebody waits for, and what is left behind is removed all the same. */
const FORGET_MS = 30_000;

/** Forgets what is kept of the sign-in to the server of a workload, and gives it; undefined where nothing was. Nobody is asked for it. */
export async function forgetSignIn(
  workload: string,
  { ask: _nobody, ...around }: SecretsSurroundings,
): Promise<KeptSignIn | undefined> {
  if ((await chosenKind(around)) === undefined) return undefined;
  const store = signInStore({ ...around, signal: AbortSignal.timeout(FORGET_MS) });
  let forgotten: KeptSignIn | undefined;
  await store.change(signInOfWorkload(workload), async (kept) => {
    forgotten = kept;
    return undefined;
  });
  return forgotten;
}

type Keeper = Required<Pick<SecretsProvider, 'get' | 'change'>>;

/** A provider for as long as its kind is the one that is chosen: the keys of a sealed file take long to make. */
function openOnce(around: SecretsSurroundings): () => Promise<SecretsProvider> {
  let open: { kind: ProviderKind | undefined; readonly provider: Promise<SecretsProvider> } | undefined;
  return async () => {
    const kind = await chosenKind(around);
    if (open?.kind === kind && open !== undefined) return open.provider;
    const opening = { kind, provider: openProviderToKeep(around) };
    open = opening;
    try {
      const provider = await opening.provider;
      opening.kind = provider.kind;
      return provider;
    } catch (error) {
      if (open === opening) open = undefined;
      throw error;
    }
  };
}

async function readIn({ get }: SecretsProvider, key: string): Promise<KeptSignIn | undefined> {
  const kept = await get(signInSecret(key));
  const read = kept === undefined ? undefined : signInIn(kept);
  if (read !== undefined || kept === undefined) return read;
  throw new SkepError('secrets/damaged', {
    message: `what is kept of the sign-in of ${key} cannot be read`,
    hint: 'sign in again',
  });
}

/** Undefined for what is none, or of a later release. */
function signInIn(text: string): KeptSignIn | undefined {
  const document = parsedJson(text);
  return readAs(signInShape, document) === undefined ? undefined : (document as KeptSignIn);
}

/** A key may be an address, which is no name of a file. */
const lockName = (key: string): string => `sign-in-${hash('sha256', key).slice(0, 32)}`;
