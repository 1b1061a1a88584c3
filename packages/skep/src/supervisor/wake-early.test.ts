import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acquireLock } from '@skep/core/files/lock.ts';
import { places, type Places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { whatIsKept, writeAddress } from './address.ts';
import { startLock, wakeEarly, type Woken } from './wake-early.ts';

/** Says what it is given through the pipe, as a supervisor that is up says so. */
const SUPERVISOR = '#!/bin/sh\nread -r word <"$0.gate" && echo "$word" >&3\n';
const UP = '{"up":true}\n';

let home: string;
let where: Places;
let alive: Set<number>;
let begun: Woken[];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-wake-'));
  where = places({ env: {}, home, platform: 'linux', temp: home });
  await mkdir(where.stateDir, { recursive: true });
  await mkdir(where.dataDir, { recursive: true });
  await writeFile(join(home, 'node'), SUPERVISOR);
  await chmod(join(home, 'node'), 0o700);
  expect(spawnSync('mkfifo', [join(home, 'node.gate')]).status).toBe(0);
  alive = new Set();
  begun = [];
});
afterEach(async () => {
  for (const { begin } of begun) {
    const { over } = begin();
    await writeFile(join(home, 'node.gate'), UP);
    await over;
  }
  await rm(home, { recursive: true });
});

async function wake(...argv: readonly string[]): Promise<Woken | undefined> {
  const woken = await wakeEarly(argv, {
    places: where,
    uid: process.getuid?.(),
    program: { node: join(home, 'node'), entry: 'x', version: '1.0.0' },
    env: {},
    cwd: '/',
    platform: 'linux',
    isAlive: ({ pid }) => alive.has(pid),
  });
  if (woken) begun.push(woken);
  return woken;
}

async function listening(): Promise<void> {
  const { state } = whatIsKept(where);
  await mkdir(where.supervisorDir, { mode: 0o700 });
  const watcher = { pid: 2, started: 'then' };
  await writeAddress(where, { pid: 1, started: 'then', state, socket: join(home, 'x.sock'), watcher });
}

test('a run finds none, and one comes up while the rest of the command is loaded', async () => {
  await listening();
  const woken = await wake('everything', '--name', 'a', '--', '--foreground', '-h');
  expect(woken).toBeDefined();
  const spawned = woken?.begin();
  await writeFile(join(home, 'node.gate'), UP);
  begun = [];
  expect(await spawned?.word).toEqual({ up: true });
  await spawned?.over;
});

test.each(['npx://a', 'https://a.example/mcp'])('for %s it begins to come up at once', async (what) => {
  const woken = await wake(what);
  // It waits to be told what to say, and nobody has asked for it.
  await writeFile(join(home, 'node.gate'), UP);
  begun = [];
  await woken?.begin().over;
});

test('it begins to come up soon though nobody asks for it, so that no other command waits', async () => {
  await wake('some/image:1');
  await writeFile(join(home, 'node.gate'), UP);
  begun = [];
  const lock = await acquireLock(startLock(where), { waitMs: 10_000, what: 'the start' });
  lock.release();
});

test('it does not begin for a run that is over before', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const woken = await wake('some/image:1');
    begun = [];
    expect(vi.getTimerCount()).toBe(1);
    woken?.lock.release();
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  ['a run in the foreground', ['x', '--foreground']],
  ['a run in the foreground, in short', ['-f', 'x']],
  ['help', ['--help']],
  ['help, in short', ['x', '-h']],
])('%s starts none', async (_, argv) => {
  expect(await wake(...argv)).toBeUndefined();
});

test.each([
  ['it lives', 1],
  ['its watcher does, which starts it again', 2],
])('none is started beside another one, while %s', async (_, pid) => {
  await listening();
  alive.add(pid);
  expect(await wake('x')).toBeUndefined();
});

test('of many commands at once one starts it, and no other does until it is up', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => wake('x')));
  expect(all.filter((one) => one !== undefined)).toHaveLength(1);
  expect(await wake('x')).toBeUndefined();
  const spawned = begun.splice(0)[0]?.begin();
  await writeFile(join(home, 'node.gate'), UP);
  await spawned?.over;
  const lock = await acquireLock(startLock(where), { waitMs: 0, what: 'the start' });
  lock.release();
});

test('a first command whose line may be wrong leaves no directories behind', async () => {
  await rm(where.stateDir, { recursive: true });
  expect(await wake('x')).toBeUndefined();
  expect(existsSync(where.stateDir)).toBe(false);
});

test.skipIf(process.getuid?.() !== 0)("nothing is started in another user's state", async () => {
  await chown(where.stateDir, 65_534, 65_534);
  expect(await wake('x')).toBeUndefined();
  expect(existsSync(where.supervisorDir)).toBe(false);
});
