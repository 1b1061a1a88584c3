import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { LineReader } from './line-reader.ts';

const reading = (limit?: number) => {
  const lines: string[] = [];
  let tooLong = 0;
  const reader = new LineReader(
    { line: (text) => void lines.push(text), tooLong: () => (tooLong += 1) },
    limit,
  );
  return { reader, lines, tooLong: () => tooLong };
};

test('gives the same lines however the bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(anyText()), fc.infiniteStream(fc.integer({ min: 1, max: 9 })), (texts, cuts) => {
      const wanted = texts.map((text) => text.replaceAll(/[\n\r]/gu, '')).filter((text) => text !== '');
      const bytes = Buffer.from(wanted.map((text, at) => text + (at % 2 === 0 ? '\n' : '\r\n')).join('\n'));
      const { reader, lines } = reading();
      for (let at = 0; at < bytes.length;) {
        const size = cuts.next().value ?? 1;
        reader.push(bytes.subarray(at, at + size));
        at += size;
      }
      expect(lines).toEqual(wanted.map((text) => Buffer.from(text).toString('utf8')));
    }),
  );
});

test('drops a line over the limit and goes on with the next', () => {
  const { reader, lines, tooLong } = reading(8);
  reader.push(Buffer.from('12345678\n123456'));
  reader.push(Buffer.from('789'));
  reader.push(Buffer.from('more and more\nnext\n'));
  expect(lines).toEqual(['12345678', 'next']);
  expect(tooLong()).toBe(1);
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

test('an unfinished line takes memory by its length, not by the pieces it comes in', () => {
  const bytes = 4 * 1024 * 1024;
  const { reader, lines } = reading();
  const memory = (): number => {
    collect();
    return process.memoryUsage().external + process.memoryUsage().heapUsed;
  };
  const before = memory();
  const slab = Buffer.alloc(64 * 1024, 'x');
  for (let at = 0; at < bytes; at += 1) reader.push(slab.subarray(at % slab.length, (at % slab.length) + 1));
  expect(memory() - before).toBeLessThan(bytes * 8);
  reader.push(Buffer.from('\n'));
  expect(lines).toEqual(['x'.repeat(bytes)]);
});
