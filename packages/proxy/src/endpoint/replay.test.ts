import { expect, test } from 'vitest';
import { readEventId, ReplayBuffer } from './replay.ts';

const event = (stream: string, sequence: number, body = 'x', at = 0) => ({
  stream,
  sequence,
  frame: { lead: '', body },
  at,
});

test('gives back the later events of one stream, in order', () => {
  const buffer = new ReplayBuffer({ characters: 0 });
  for (const one of [event('a', 1, 'a1'), event('b', 1, 'b1'), event('a', 2, 'a2'), event('a', 3, 'a3')])
    buffer.add(one);
  expect(buffer.after('a', 1)?.map(({ body }) => body)).toEqual(['a2', 'a3']);
  expect(buffer.after('a', 3)).toEqual([]);
  expect(buffer.after('c', 0)).toBeUndefined();
});

test.each([
  ['256 events', 300, 'x', 0, 256],
  ['1 MiB', 20, 'x'.repeat(100 * 1024), 0, 10],
  ['10 minutes', 20, 'x', 60_000, 11],
])('keeps no more than %s', (...[, events, frame, apart, kept]) => {
  const budget = { characters: 0 };
  const buffer = new ReplayBuffer(budget);
  for (let n = 1; n <= events; n += 1) buffer.add(event('a', n, frame, n * apart));
  expect(buffer.after('a', 0)).toHaveLength(kept);
  expect(budget.characters).toBe(kept * frame.length);
  buffer.clear();
  expect(budget.characters).toBe(0);
});

test('an event larger than the whole buffer is not kept', () => {
  const buffer = new ReplayBuffer({ characters: 0 });
  buffer.add(event('a', 1, 'x'.repeat(2 * 1024 * 1024)));
  expect(buffer.after('a', 0)).toBeUndefined();
});

test('a session gives up its own events when all sessions together keep too much', () => {
  const budget = { characters: 64 * 1024 * 1024 };
  const buffer = new ReplayBuffer(budget);
  buffer.add(event('a', 1));
  expect(buffer.after('a', 0)).toBeUndefined();
  expect(budget.characters).toBe(64 * 1024 * 1024);
});

test.each([
  ['1-0', { stream: '1', sequence: 0 }],
  ['z9-12', { stream: 'z9', sequence: 12 }],
  ['', undefined],
  ['1', undefined],
  ['A-1', undefined],
  ['1--1', undefined],
  ['1-1 ', undefined],
])('event id "%s"', (id, expected) => {
  expect(readEventId(id)).toEqual(expected);
});
