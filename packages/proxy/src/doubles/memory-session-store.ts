import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { MAX_VALUE_CHARACTERS, type SessionStore } from '../backend/replicas/session-store.ts';

/** A session store in memory, for replicas in one process; it can go away, come back, and lose what it has. */
export interface MemorySessionStore extends SessionStore {
  readonly values: Map<string, { readonly value: string; readonly until: number }>;
  /** How often it was asked for something. */
  readonly asked: () => number;
  leave(): void;
  comeBack(): void;
}

export function memorySessionStore(clock: Pick<Clock, 'elapsed'>): MemorySessionStore {
  const values: MemorySessionStore['values'] = new Map();
  const whenBack: (() => void)[] = [];
  let isAway = false;
  let asked = 0;
  const find = async (key: string): Promise<string | undefined> => {
    asked += 1;
    if (isAway) throw new SkepError('proxy/session-store-away');
    const found = values.get(key);
    if (found !== undefined && found.until > clock.elapsed()) return found.value;
    values.delete(key);
    return undefined;
  };
  return {
    values,
    asked: () => asked,
    get: async (key) => (await find(key))?.slice(0, MAX_VALUE_CHARACTERS + 1),
    async replace(key, { expected, value, ttlMs }) {
      const isSame = (await find(key)) === expected && (values.get(key)?.value ?? undefined) === expected;
      if (isSame) values.set(key, { value, until: clock.elapsed() + ttlMs });
      return isSame;
    },
    async extend(key, ttlMs) {
      const value = await find(key);
      if (value !== undefined) values.set(key, { value, until: clock.elapsed() + ttlMs });
      return value !== undefined;
    },
    onBack: (tell) => void whenBack.push(tell),
    close() {},
    leave() {
      isAway = true;
    },
    comeBack() {
      isAway = false;
      for (const tell of whenBack) tell();
    },
  };
}
