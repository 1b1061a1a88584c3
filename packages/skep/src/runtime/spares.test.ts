import { describe, expect, test } from 'vitest';
import { Spares, type Spare } from './spares.ts';

/** Spares that are called s1, s2 and so on; `left` are those that were not removed. */
function maker() {
  const left: string[] = [];
  let made = 0;
  async function make(): Promise<Spare> {
    const id = `s${(made += 1)}`;
    left.push(id);
    return { id, name: id, remove: async () => void left.splice(left.indexOf(id), 1) };
  }
  return { left, make };
}

test('one is made for each key, and handed out once', async () => {
  const { left, make } = maker();
  const spares = new Spares();
  await Promise.all([spares.make('a', make), spares.make('a', make), spares.make('b', make)]);
  expect(left).toEqual(['s1', 's2']);
  const [one, other] = await Promise.all([spares.take('a'), spares.take('a')]);
  expect([one?.id, other?.id]).toEqual(['s1', undefined]);
  await spares.make('a', make);
  expect((await spares.take('a'))?.id).toBe('s3');
});

test('the one that is ready can be looked at, and one that is being made cannot', async () => {
  const { make } = maker();
  const spares = new Spares();
  const { promise, resolve } = Promise.withResolvers<void>();
  const making = spares.make('a', () => promise.then(make));
  expect(await spares.peek('a')).toBeUndefined();
  resolve();
  await making;
  expect([(await spares.peek('a'))?.id, (await spares.peek('a'))?.id]).toEqual(['s1', 's1']);
  expect((await spares.take('a'))?.id).toBe('s1');
  expect(await spares.peek('a')).toBeUndefined();
});

describe('what may be left', () => {
  /** Whether something may be, behind an attempt to make one. */
  async function attempt(spares: Spares, key: string, make: () => Promise<Spare>): Promise<boolean> {
    await spares.make(key, make).catch(() => {});
    return spares.mayBeLeft(key);
  }

  test('is told to the first of each key, whatever was made of another', async () => {
    const { make } = maker();
    const spares = new Spares();
    expect([await attempt(spares, 'a', make), await attempt(spares, 'b', make)]).toEqual([true, true]);
    await spares.take('a');
    expect(await attempt(spares, 'a', make)).toBe(false);
  });

  test('is told again after one that failed, and after one that did not come to its workload', async () => {
    const { make } = maker();
    const spares = new Spares();
    expect(await attempt(spares, 'a', make)).toBe(true);
    await spares.take('a');
    const away = spares.make('a', () => Promise.reject(new Error('the engine is away')));
    await expect(away).rejects.toThrow('the engine is away');
    expect(await attempt(spares, 'a', make)).toBe(true);
    const { id = '' } = (await spares.take('a')) ?? {};
    expect(spares.isLeft(id, '')).toBe(false);
    spares.arrived(id, false);
    expect([spares.isLeft(id, ''), await attempt(spares, 'a', make)]).toEqual([true, true]);
    const next = (await spares.take('a'))?.id ?? '';
    spares.arrived(next, true);
    expect([spares.isLeft(next, ''), await attempt(spares, 'a', make)]).toEqual([true, false]);
  });

  test('is not what another process may use that runs, and is looked for again because of it', async () => {
    const { make } = maker();
    const running = new Set([1, 2]);
    const spares = new Spares({
      self: { pid: 1, started: 'boot 10' },
      isAlive: ({ pid, started }) => running.has(pid) && started === `boot ${pid}0`,
    });
    expect(spares.maker).toBe('1 boot 10');
    expect(await attempt(spares, 'a', make)).toBe(true);
    const left = ['1 boot 10', '2 boot 19', '3 boot 30', '', 'nobody'];
    expect(left.filter((one) => !spares.isLeft('n1', one))).toEqual([]);
    await spares.take('a');
    expect(await attempt(spares, 'a', make)).toBe(false);
    expect(spares.isLeft('n1', '2 boot 20')).toBe(false);
    await spares.take('a');
    expect(await attempt(spares, 'a', make)).toBe(true);
    running.delete(2);
    expect(spares.isLeft('n1', '2 boot 20')).toBe(true);
  });

  test('is looked for while nothing is made that nobody knows the id of yet', async () => {
    const { make } = maker();
    const spares = new Spares();
    const { promise, resolve } = Promise.withResolvers<Spare>();
    const making = spares.make('a', () => promise);
    expect(await attempt(spares, 'b', make)).toBe(false);
    resolve(await make());
    await making;
    await spares.take('b');
    expect(await attempt(spares, 'b', make)).toBe(true);
  });
});

test('one that is still being made is waited for, and nobody gets one that could not be made', async () => {
  const { make } = maker();
  const spares = new Spares();
  const { promise, resolve } = Promise.withResolvers<Spare>();
  const making = spares.make('a', () => promise);
  const taken = spares.take('a');
  resolve(await make());
  await making;
  expect((await taken)?.id).toBe('s1');
  const failure = new Error('no address is free');
  const failing = spares.make('a', () => Promise.reject(failure));
  const none = spares.take('a');
  await expect(failing).rejects.toBe(failure);
  expect(await none).toBeUndefined();
});

test('what is left is removed, and after the end nothing is made', async () => {
  const { left, make } = maker();
  const spares = new Spares();
  await spares.make('a', make);
  await spares.clear();
  expect(left).toEqual([]);
  await spares.make('a', make);
  await spares.make('b', make);
  await spares.close();
  await spares.make('a', make);
  expect(left).toEqual([]);
});
