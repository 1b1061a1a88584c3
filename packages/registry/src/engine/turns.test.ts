import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

/** Counts the turns of all walks. */
function walks(): {
  readonly taken: () => number;
  readonly walk: (turns: number) => () => string | undefined;
} {
  let taken = 0;
  const walk = (turns: number) => {
    let left = turns;
    return () => {
      taken += 1;
      left -= 1;
      return left === 0 ? 'found' : undefined;
    };
  };
  return { taken: () => taken, walk };
}

test('however many walks there are, others wait for one turn of one of them', async () => {
  const [turns, { taken, walk }] = [new Turns(), walks()];
  const running = Promise.all(Array.from({ length: 20 }, () => turns.finish(walk(3))));
  for (let before = 0; before < 60; before = taken()) {
    await setImmediate();
    expect(taken() - before).toBeLessThan(2);
  }
  expect(await running).toEqual(Array.from({ length: 20 }, () => 'found'));
});

test('gives a page up when all who waited for it have left, and not before', async () => {
  const [turns, { taken, walk }] = [new Turns(1), walks()];
  const [first, second] = [{ destroyed: false }, { destroyed: false }];
  const shared = turns.finish(walk(1000), () => !first.destroyed || !second.destroyed);
  await setImmediate();
  second.destroyed = true;
  await setImmediate();
  await expect(turns.finish(walk(1))).rejects.toMatchObject({ code: 'registry/not-ready' });
  first.destroyed = true;
  // Its place is free at once.
  const next = turns.finish(walk(2));
  await expect(shared).rejects.toMatchObject({ code: 'registry/not-ready' });
  expect(await next).toBe('found');
  expect(taken()).toBeLessThan(10);
});

test('takes no more walks than it can finish soon, and goes on when some are done or have failed', async () => {
  const [turns, { walk }] = [new Turns(2), walks()];
  const failing = turns.finish(() => {
    throw new Error('broken');
  });
  const running = turns.finish(walk(2));
  await expect(turns.finish(walk(1))).rejects.toMatchObject({ code: 'registry/not-ready' });
  await expect(failing).rejects.toThrow('broken');
  expect(await running).toBe('found');
  expect(await turns.finish(walk(2))).toBe('found');
});
