import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Demultiplexer } from './demultiplex.ts';

function frame(kind: number, payload: Uint8Array): Buffer {
  const head = Buffer.from([kind, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(payload.length, 4);
  return Buffer.concat([head, payload]);
}

function take(chunks: readonly Buffer[]): { stdout: string; stderr: string } {
  const seen = { stdout: '', stderr: '' };
  const demultiplexer = new Demultiplexer();
  for (const chunk of chunks)
    demultiplexer.take(chunk, (stream, bytes) => void (seen[stream] += bytes.toString('latin1')));
  return seen;
}

test('gives back both streams whole, however the bytes are cut', () => {
  const frames = fc.array(fc.tuple(fc.constantFrom(1, 2), fc.uint8Array({ maxLength: 40 })), {
    maxLength: 12,
  });
  const cuts = fc.array(fc.integer({ min: 1, max: 13 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(frames, cuts, (sent, sizes) => {
      const whole = Buffer.concat(sent.map(([kind, payload]) => frame(kind, payload)));
      const chunks: Buffer[] = [];
      for (let at = 0, turn = 0; at < whole.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        chunks.push(whole.subarray(at, at + size));
        at += size;
      }
      const text = (wanted: number) =>
        sent
          .filter(([kind]) => kind === wanted)
          .map(([, payload]) => Buffer.from(payload).toString('latin1'))
          .join('');
      expect(take(chunks)).toEqual({ stdout: text(1), stderr: text(2) });
    }),
    { numRuns: 60 },
  );
});

test('skips frames of a kind it does not know', () => {
  expect(take([frame(3, Buffer.from('x')), frame(1, Buffer.from('y'))])).toEqual({
    stdout: 'y',
    stderr: '',
  });
});
