import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readTextAtOnce } from './read-at-once.ts';
import { readText, type ReadLimits } from './read-limited.ts';

const directory = mkdtempSync(path.join(tmpdir(), 'skep-read-'));
afterAll(() => rmSync(directory, { recursive: true }));
const at = (name: string): string => path.join(directory, name);

const READERS = {
  'in the background': readText,
  'at once': async (file: string, limits: ReadLimits): Promise<string> => readTextAtOnce(file, limits),
};

describe.each(Object.entries(READERS))('a file that is read %s', (_how, readFile) => {
  const read = (name: string, maxBytes = 10): Promise<string> =>
    readFile(name.startsWith('/') ? name : at(name), { maxBytes, what: 'note' });

  test.each(['', 'x', '0123456789'])('is what is in it: "%s"', async (text) => {
    writeFileSync(at('note'), text);
    expect(await read('note')).toBe(text);
  });

  test('may be larger than most', async () => {
    const text = 'é'.repeat(50_000);
    writeFileSync(at('note'), text);
    expect(await read('note', 100_000)).toBe(text);
    await expect(read('note', 99_999)).rejects.toMatchObject({ code: 'file/too-large' });
  });

  test('leaves nothing of itself in the next', async () => {
    writeFileSync(at('first'), '0123456789');
    writeFileSync(at('second'), 'ab');
    expect([await read('first'), await read('second')]).toEqual(['0123456789', 'ab']);
  });

  test('is refused when it is no UTF-8 text', async () => {
    writeFileSync(at('note'), Buffer.from([0xff]));
    await expect(read('note')).rejects.toMatchObject({ code: 'file/unreadable' });
  });

  test('may be one whose size nobody knows before', async () => {
    expect((await read('/proc/self/stat', 10_000)).length).toBeGreaterThan(10);
  });

  test('is refused when it is not there, too large, or no file', async () => {
    writeFileSync(at('large'), '0123456789a');
    execFileSync('mkfifo', [at('pipe')]);
    await expect(read('none')).rejects.toMatchObject({ code: 'file/not-found' });
    await expect(read('large')).rejects.toMatchObject({ code: 'file/too-large' });
    await expect(read('/proc/self/stat')).rejects.toMatchObject({ code: 'file/too-large' });
    for (const name of ['pipe', '.']) {
      await expect(read(name)).rejects.toMatchObject({ code: 'file/not-a-file' });
    }
    rmSync(at('pipe'));
  });
});
