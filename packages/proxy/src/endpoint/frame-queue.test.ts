import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameQueue } from './frame-queue.ts';

const frame = (body: string) => ({ lead: '', body });
const drained = (queue: FrameQueue): string[] => {
  const bodies: string[] = [];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) bodies.push(String(next.body));
  return bodies;
};

test('keeps the order, everything that may not be dropped, and the newest of what may', () => {
  const pushes = fc.array(fc.record({ droppable: fc.boolean(), size: fc.nat(30_000) }), { maxLength: 200 });
  fc.assert(
    fc.property(pushes, (all) => {
      const queue = new FrameQueue();
      const marks = all.map(({ size }, at) => `${at}:${'x'.repeat(size)}`);
      for (const [at, { droppable }] of all.entries()) {
        if (droppable) queue.pushDroppable(frame(marks[at]!));
        else queue.push(frame(marks[at]!));
      }
      const kept = drained(queue);
      const places = kept.map((body) => marks.indexOf(body));
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      const due = all.flatMap(({ droppable }, at) => (droppable ? [] : [at]));
      expect(places).toEqual(expect.arrayContaining(due));
      const newest = all.findLastIndex(({ droppable }) => droppable);
      if (newest !== -1) expect(places).toContain(newest);
      expect(places.length - due.length).toBeLessThanOrEqual(64);
      expect([queue.bytes, queue.empty]).toEqual([0, true]);
    }),
  );
});

test('large progress gives way by size, not only by number', () => {
  const queue = new FrameQueue();
  for (let n = 0; n < 64; n += 1) queue.pushDroppable(frame('x'.repeat(100_000)));
  expect(queue.bytes).toBeLessThan(400_000);
});

test('counts what an event costs beside its text', () => {
  const queue = new FrameQueue();
  for (let n = 0; n < 1_000; n += 1) queue.push(frame(''));
  expect(queue.bytes).toBeGreaterThan(100_000);
  queue.clear();
  expect([queue.bytes, queue.empty]).toEqual([0, true]);
});
