import { expect, test } from 'vitest';
import { ingest } from './ingest.ts';
import { ingestInThread } from './ingest-thread.ts';

const program = new URL('../main.ts', import.meta.url);
const missing = new URL('missing.ts', import.meta.url);
const idle = new AbortController().signal;

const KIB = 1024;

/** A catalogue of about so many bytes, most of them in titles. */
function catalogue(bytes: number) {
  const servers = Array.from({ length: bytes / (100 * KIB) }, (_, at) => ({
    name: `a/b${at}`,
    version: '1',
    description: 'x',
    title: 't'.repeat(100 * KIB),
  }));
  return { label: 'test', bytes: Buffer.from(JSON.stringify(servers)) };
}

const MIB = 1024 * KIB;

test.each([
  ['a small catalogue', true, 100 * KIB],
  ['a catalogue of some megabytes, as long as nobody is served,', false, 12 * MIB],
])('%s is read without a thread', async (_, serving, bytes) => {
  const read = ingestInThread(missing, () => serving);
  expect((await read(catalogue(bytes), idle)).entries).not.toHaveLength(0);
});

test.each([
  ['while requests are served', true, MIB],
  ['when it is very large', false, 17 * MIB],
])('a catalogue is read in a thread %s', async (_, serving, bytes) => {
  const isServing = (): boolean => serving;
  await expect(ingestInThread(missing, isServing)(catalogue(bytes), idle)).rejects.toThrow();
  const input = catalogue(bytes);
  expect(await ingestInThread(program, isServing)(input, idle)).toEqual(ingest(input));
});

test('a failure keeps its code on the way out of the thread', async () => {
  const input = { label: 'test', bytes: Buffer.from(`["${'x'.repeat(MIB)}"`) };
  await expect(ingestInThread(program, () => true)(input, idle)).rejects.toMatchObject({
    code: 'catalog/not-json',
  });
});
