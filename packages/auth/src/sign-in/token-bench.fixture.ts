import { onTestFinished } from 'vitest';
import { silentLog } from '@skep/core/log/log.ts';
import { manualClock, type ManualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { memoryStore } from './memory-store.fixture.ts';
import type { KeptSignIn, SignInState, SignInStore, ProvingTokenSource } from './port.ts';
import { createSignInFetch } from './sign-in-fetch.ts';
import { createTokenSource, type TokenSourceServices } from './token-source.ts';
import { signInAt, startWorld, type World } from './world.fixture.ts';

// A token source over the scripted world of this folder, for tests.

export const KEY = 'one';
export const HOUR = 3_600_000;

export interface Bench extends AsyncDisposable {
  readonly world: World;
  readonly clock: ManualClock;
  readonly store: ReturnType<typeof memoryStore>;
  readonly states: SignInState[];
  readonly source: (changes?: Partial<TokenSourceServices>, store?: SignInStore) => ProvingTokenSource;
  /** Of refreshes. */
  readonly refreshes: () => number;
}

/** A sign-in whose refresh token is the one that the server knows, and that is good for an hour. */
export async function openBench(changes: Partial<KeptSignIn> = {}): Promise<Bench> {
  const world = await startWorld();
  const clock = manualClock();
  const first = await fetch(`${world.server.origin}/token`, { method: 'POST', body: new URLSearchParams() });
  const { access_token: accessToken } = (await first.json()) as { access_token: string };
  const kept: KeptSignIn = {
    ...signInAt(world),
    resourceIndicator: world.target.resource,
    accessToken,
    obtainedAt: clock.now(),
    expiresAt: clock.now() + HOUR,
    refreshToken: world.refreshToken(),
    ...changes,
  };
  const store = memoryStore(new Map([[KEY, kept]]));
  const states: SignInState[] = [];
  const net = createSignInFetch({ timeoutMs: 2_000 });
  return {
    world,
    clock,
    store,
    states,
    refreshes: () => world.server.of('POST /token').length - 1,
    source(given = {}, where = store) {
      const onState = (state: SignInState): void => void states.push(state);
      const services = { fetch: net, clock, log: silentLog, random: () => 0.5, onState, ...given };
      const source = createTokenSource(KEY, where, services);
      onTestFinished(() => source.close());
      return source;
    },
    async [Symbol.asyncDispose]() {
      net.close();
      await world[Symbol.asyncDispose]();
    },
  };
}

export const keptIn = ({ store }: Bench): KeptSignIn => {
  const kept = store.kept.get(KEY);
  if (kept === undefined) throw new Error('nothing is kept');
  return kept;
};
