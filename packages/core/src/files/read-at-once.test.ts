import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readBytes } from './read-limited.ts';

const directory = mkdtempSync(path.join(tmpdir(), 'skep-read-'));
afterAll(() => rmSync(directory, { recursive: true }));
const at = (name: string): string => path.join(directory, name);

describe.each([false, true])('a file that is read at once: %s', (atOnce) => {
  const read = (name: string, maxBytes = 10): Promise<Buffer> =>
    readBytes(name.startsWith('/') ? name : at(name), { maxBytes, what: 'note', atOnce });

  test.each(['', 'x', '0123456789'])('is what is in it: "%s"', async (text) => {
    writeFileSync(at('note'), text);
    expect((await read('note')).toString()).toBe(text);
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
