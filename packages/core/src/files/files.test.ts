import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { atomicWrite, removeFile } from './atomic-write.ts';
import { readBytes, readJson, readText } from './read-limited.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'skep-files-'));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

describe('atomicWrite', () => {
  test('makes directories of mode 0750 and a file of mode 0600', async () => {
    const path = join(dir, 'a', 'b', 'file.json');
    await atomicWrite(path, '{}');
    expect(await readFile(path, 'utf8')).toBe('{}');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(dir, 'a'))).mode & 0o777).toBe(0o750);
  });

  test('narrows the mode of a file that was readable by all', async () => {
    const path = join(dir, 'open.json');
    await writeFile(path, 'old');
    await chmod(path, 0o644);
    await atomicWrite(path, 'new');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test('replaces a symbolic link instead of writing through it', async () => {
    const victim = join(dir, 'victim');
    await writeFile(victim, 'mine');
    const link = join(dir, 'link');
    await symlink(victim, link);
    await atomicWrite(link, 'new');
    expect(await readFile(victim, 'utf8')).toBe('mine');
    expect(await readFile(link, 'utf8')).toBe('new');
  });

  test('leaves nothing behind when the target cannot be replaced', async () => {
    const target = join(dir, 'occupied');
    await mkdir(join(target, 'child'), { recursive: true });
    await expect(atomicWrite(target, 'x')).rejects.toMatchObject({ code: 'file/write-failed' });
    expect((await readdir(dir)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  test('many writers at once leave one whole content', async () => {
    const path = join(dir, 'raced');
    const contents = Array.from({ length: 20 }, (_, index) => String(index).repeat(10_000));
    await Promise.all(contents.map((content) => atomicWrite(path, content)));
    expect(contents).toContain(await readFile(path, 'utf8'));
  });

  test('asks once more when all is on the disk, and leaves nothing where it may not', async () => {
    const path = join(dir, 'asked');
    await writeFile(path, 'old');
    const temporary = async (): Promise<string[]> =>
      (await readdir(dir)).filter((name) => name.startsWith('.asked.'));
    for (const may of [false, true]) {
      const confirm = async (): Promise<boolean> => {
        expect(await readFile(join(dir, (await temporary())[0] ?? ''), 'utf8')).toBe('new');
        return may;
      };
      await atomicWrite(path, 'new', { confirm });
      expect(await readFile(path, 'utf8')).toBe(may ? 'new' : 'old');
      expect(await temporary()).toEqual([]);
    }
  });

  test('removing twice is fine', async () => {
    const path = join(dir, 'gone');
    await writeFile(path, '');
    await removeFile(path);
    await expect(removeFile(path)).resolves.toBeUndefined();
  });
});

describe('reading', () => {
  const limits = { maxBytes: 10, what: 'profile' };

  test('names a missing file', async () => {
    await expect(readBytes(join(dir, 'nope'), limits)).rejects.toMatchObject({
      code: 'file/not-found',
      message: `profile "${join(dir, 'nope')}" does not exist`,
    });
  });

  test('refuses a directory and a named pipe without waiting', async () => {
    const pipe = join(dir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    await expect(readBytes(dir, limits)).rejects.toMatchObject({ code: 'file/not-a-file' });
    await expect(readBytes(pipe, limits)).rejects.toMatchObject({ code: 'file/not-a-file' });
  });

  test('takes exactly the limit and refuses one byte more', async () => {
    const path = join(dir, 'sized');
    await writeFile(path, 'x'.repeat(10));
    expect((await readBytes(path, limits)).length).toBe(10);
    await writeFile(path, 'x'.repeat(11));
    await expect(readBytes(path, limits)).rejects.toMatchObject({ code: 'file/too-large' });
  });

  test('reads a file of many blocks whole', async () => {
    const path = join(dir, 'large');
    const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
    await writeFile(path, content);
    expect((await readBytes(path, { maxBytes: 300_000 })).equals(content)).toBe(true);
  });

  test.skipIf(process.platform !== 'linux')('reads a file whose size is not told, to the limit', async () => {
    expect((await stat('/proc/self/limits')).size).toBe(0);
    expect((await readBytes('/proc/self/limits', { maxBytes: 100_000 })).toString()).toMatch(/^Limit .*\n$/s);
    await expect(readBytes('/proc/self/limits', limits)).rejects.toMatchObject({ code: 'file/too-large' });
  });

  test('drops a byte order mark and refuses bytes that are not UTF-8', async () => {
    const path = join(dir, 'text');
    await writeFile(path, '\u{FEFF}hi');
    expect(await readText(path, limits)).toBe('hi');
    await writeFile(path, Buffer.from([0xff, 0xfe]));
    await expect(readText(path, limits)).rejects.toMatchObject({ code: 'file/unreadable' });
  });

  test('says where JSON breaks', async () => {
    const path = join(dir, 'broken.json');
    await writeFile(path, '{\n "a": }');
    await expect(readJson(path, limits)).rejects.toThrow('is not valid JSON at line 2, column 7');
    await writeFile(path, '');
    await expect(readJson(path, limits)).rejects.toThrow('is not valid JSON: it is empty');
  });
});
