import { expect, test } from 'vitest';
import { MAX_VALUE_CHARACTERS, type SessionStore } from './session-store.ts';

const LONG_MS = 60_000;

/** What every session store promises. `pass` lets that much time go by for it. */
export function sessionStoreContract(
  store: () => SessionStore,
  pass: (milliseconds: number) => Promise<void>,
): void {
  let last = 0;
  const fresh = (): string => `contract-${(last += 1)}`;
  const write = (key: string, expected: string | undefined, value: string, ttlMs = LONG_MS) =>
    store().replace(key, { expected, value, ttlMs });

  test('has what was written, and nothing else', async () => {
    const [key, other] = [fresh(), fresh()];
    expect(await store().get(key)).toBeUndefined();
    expect(await write(key, undefined, 'one')).toBe(true);
    expect([await store().get(key), await store().get(other)]).toEqual(['one', undefined]);
  });

  test('replaces only what was expected', async () => {
    const key = fresh();
    expect(await write(key, 'one', 'two')).toBe(false);
    expect(await store().get(key)).toBeUndefined();
    await write(key, undefined, 'one');
    expect(await write(key, undefined, 'two')).toBe(false);
    expect(await write(key, 'two', 'three')).toBe(false);
    expect(await write(key, 'one', 'two')).toBe(true);
    expect(await store().get(key)).toBe('two');
  });

  test('lets one of many win who replace the same at once', async () => {
    const key = fresh();
    await write(key, undefined, 'old');
    const values = ['a', 'b', 'c', 'd'];
    const won = await Promise.all(values.map((value) => write(key, 'old', value)));
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await store().get(key)).toBe(values[won.indexOf(true)]);
  });

  test('forgets what its time is over of, and not what was given more', async () => {
    const [short, kept] = [fresh(), fresh()];
    await write(short, undefined, 'x', 200);
    await write(kept, undefined, 'y', 200);
    expect(await store().extend(kept, LONG_MS)).toBe(true);
    await pass(400);
    await expect.poll(() => store().get(short), { timeout: 10_000 }).toBeUndefined();
    expect(await store().extend(short, LONG_MS)).toBe(false);
    expect(await store().get(kept)).toBe('y');
  });

  test('reads a value as long as one may be whole', async () => {
    const key = fresh();
    const value = 'v'.repeat(MAX_VALUE_CHARACTERS);
    await write(key, undefined, value);
    expect(await store().get(key)).toBe(value);
  });
}
