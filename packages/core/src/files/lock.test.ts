import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acquireLock, removeUnusedLocks, withLock } from './lock.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'skep-lock-'));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

const once0 = { waitMs: 0, what: 'workload "x"' };

test('a second holder in the same process is refused and told what is locked', async () => {
  const path = join(dir, 'locks', 'same.lock');
  const lock = await acquireLock(path, once0);
  await expect(acquireLock(path, once0)).rejects.toMatchObject({
    code: 'file/locked',
    message: 'another process is working on workload "x"',
  });
  lock.release();
  lock.release();
  (await acquireLock(path, once0)).release();
});

test('holders run one after the other and never together', async () => {
  const path = join(dir, 'serial.lock');
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 5 }, () =>
      withLock(path, { ...once0, waitMs: 5_000 }, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await stat(path);
        inside -= 1;
      }),
    ),
  );
  expect(most).toBe(1);
});

test('the lock is free again after its action failed', async () => {
  const path = join(dir, 'failing.lock');
  await expect(withLock(path, once0, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  (await acquireLock(path, once0)).release();
});

test('waiting ends when the signal aborts', async () => {
  const path = join(dir, 'aborted.lock');
  const lock = await acquireLock(path, once0);
  const abort = new AbortController();
  const waiting = acquireLock(path, { ...once0, waitMs: 60_000, signal: abort.signal });
  abort.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
  lock.release();
});

test('a killed process leaves its lock free', async () => {
  const path = join(dir, 'killed.lock');
  const module = join(import.meta.dirname, 'lock.ts');
  const program = `import { acquireLock } from ${JSON.stringify(module)};
    await acquireLock(${JSON.stringify(path)}, ${JSON.stringify(once0)});
    console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  await expect(acquireLock(path, once0)).rejects.toMatchObject({ code: 'file/locked' });
  child.kill('SIGKILL');
  await once(child, 'exit');
  (await acquireLock(path, once0)).release();
});

test('a try of a holder that holds it already does not free it for other processes', async () => {
  const path = join(dir, 'twice.lock');
  const lock = await acquireLock(path, once0);
  await expect(acquireLock(path, once0)).rejects.toMatchObject({ code: 'file/locked' });
  const program = `import { acquireLock } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))};
    const held = await acquireLock(${JSON.stringify(path)}, ${JSON.stringify(once0)}).catch((error) => error.code);
    console.log(typeof held === 'string' ? held : 'free');`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  expect(said.toString().trim()).toBe('file/locked');
  lock.release();
});

test('making the file at the same time as a holder does not free it for other processes', async () => {
  const paths = Array.from({ length: 100 }, (_, n) => join(dir, `made-${n}.lock`));
  const held = await Promise.all(
    paths.map(async (path) => {
      const tries = await Promise.allSettled([1, 2, 3, 4].map(() => acquireLock(path, once0)));
      return tries.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    }),
  );
  expect(held.map((locks) => locks.length)).toEqual(paths.map(() => 1));
  const program = `import { acquireLock } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))};
    const tries = await Promise.allSettled(${JSON.stringify(paths)}.map((path) => acquireLock(path, ${JSON.stringify(once0)})));
    console.log(tries.filter((one) => one.status === 'fulfilled').length);`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  expect(said.toString().trim()).toBe('0');
  for (const lock of held.flat()) lock.release();
});

test('a lock is void when its file was removed or made anew by others', async () => {
  const path = join(dir, 'void.lock');
  const lock = await acquireLock(path, once0);
  expect(await lock.isValid()).toBe(true);
  await rm(path);
  expect(await lock.isValid()).toBe(false);
  const other = await acquireLock(path, once0);
  expect(await lock.isValid()).toBe(false);
  expect(await other.isValid()).toBe(true);
  lock.release();
  other.release();
  expect(await other.isValid()).toBe(false);
});

test('the lock file is private and stays', async () => {
  const path = join(dir, 'private.lock');
  (await acquireLock(path, once0)).release();
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test('a place where no lock can be made is named', async () => {
  const path = join(dir, 'private.lock', 'below-a-file.lock');
  await expect(acquireLock(path, once0)).rejects.toMatchObject({
    code: 'file/write-failed',
    message: expect.stringMatching(/^cannot lock workload "x" with ".*": E/u),
  });
});

test('shared holders exclude an exclusive one, not each other', async () => {
  const path = join(dir, 'shared.lock');
  const readers = [await acquireLock(path, { ...once0, shared: true })];
  readers.push(await acquireLock(path, { ...once0, shared: true }));
  await expect(acquireLock(path, once0)).rejects.toMatchObject({ code: 'file/locked' });
  readers.forEach((reader) => reader.release());
  const writer = await acquireLock(path, once0);
  await expect(acquireLock(path, { ...once0, shared: true })).rejects.toMatchObject({ code: 'file/locked' });
  writer.release();
});

test('only lock files that nobody holds are removed, and then their directory', async () => {
  const locks = join(dir, 'many');
  const held = await acquireLock(join(locks, 'held.lock'), once0);
  const shared = await acquireLock(join(locks, 'shared.lock'), { ...once0, shared: true });
  (await acquireLock(join(locks, 'free.lock'), once0)).release();
  await removeUnusedLocks(locks);
  expect(await readdir(locks)).toEqual(['held.lock', 'shared.lock']);
  await expect(acquireLock(join(locks, 'held.lock'), once0)).rejects.toMatchObject({ code: 'file/locked' });
  held.release();
  shared.release();
  await removeUnusedLocks(locks);
  await removeUnusedLocks(locks);
  await expect(stat(locks)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('holders never meet, however often the files are removed meanwhile', async () => {
  const locks = join(dir, 'removed');
  const path = join(locks, 'busy.lock');
  let inside = 0;
  let most = 0;
  const progress = { done: false };
  const work = Promise.all(
    Array.from({ length: 20 }, () =>
      withLock(path, { ...once0, waitMs: 20_000 }, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await stat(path);
        inside -= 1;
      }),
    ),
  ).finally(() => (progress.done = true));
  while (!progress.done) await removeUnusedLocks(locks);
  await work;
  expect(most).toBe(1);
});
