import { PassThrough, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { WriteQueue } from './write-queue.ts';

const written = async (stdin: PassThrough, lines: number): Promise<readonly string[]> => {
  let text = '';
  for await (const chunk of stdin.setEncoding('utf8')) {
    text += String(chunk);
    if (text.split('\n').length > lines) break;
  }
  return text.split('\n').slice(0, -1);
};

test('takes as many lines for a server that does not read as may be unanswered, then no more', async () => {
  const stdin = new PassThrough({ highWaterMark: 1 });
  const queue = new WriteQueue(stdin);
  let taken = 0;
  while (taken < 5_000 && queue.write(String(taken))) taken += 1;
  expect(taken).toBe(4_096);
  const lines = await written(stdin, taken);
  expect(lines).toEqual(Array.from({ length: 4_096 }, (_, n) => String(n)));
});

test('keeps large lines within a bound of bytes', () => {
  const queue = new WriteQueue(new PassThrough({ highWaterMark: 1 }));
  const big = 'x'.repeat(10 * 1024 * 1024);
  expect([1, 2, 3, 4, 5].map(() => queue.write(big))).toEqual([true, true, false, false, false]);
});

/** A stdin that is read at once, and writes down what each write brought. */
const reading = () => {
  const writes: string[] = [];
  const stdin = new Writable({
    write(chunk, _encoding, done) {
      writes.push(String(chunk));
      done();
    },
  });
  return { stdin, writes };
};
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('what one turn of the event loop brings wakes the server once', async () => {
  const { stdin, writes } = reading();
  const queue = new WriteQueue(stdin);
  for (const line of ['a', 'b', 'c']) expect(queue.write(line)).toBe(true);
  await turn();
  queue.write('d');
  await turn();
  expect(writes).toEqual(['a\nb\nc\n', 'd\n']);
});

test('large lines do not wait for each other', () => {
  const { stdin, writes } = reading();
  const queue = new WriteQueue(stdin);
  const large = 'x'.repeat(64 * 1024);
  queue.write('a');
  queue.write(large);
  expect(writes).toEqual([`a\n${large}\n`]);
});
