import { expect, test } from 'vitest';
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

test('only the first that a process makes is told to be the first', async () => {
  const { make } = maker();
  const spares = new Spares();
  const first: boolean[] = [];
  for (const key of ['a', 'b']) {
    await spares.make(key, (isFirst) => {
      first.push(isFirst);
      return make();
    });
  }
  expect(first).toEqual([true, false]);
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
