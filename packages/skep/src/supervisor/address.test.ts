import { chown, mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readAddress, whatIsKept, writeAddress } from './address.ts';
import { testClient } from './client.fixture.ts';
import type { SupervisorClient } from './client.ts';

const signal = new AbortController().signal;

describe.skipIf(process.getuid?.() !== 0)('an address that another user wrote', () => {
  const chosen = { pid: 4711, started: 'then' };
  let home: string;
  let where: ReturnType<typeof places>;
  let client: SupervisorClient;
  let ended: [number, string][];
  let silent: Server;
  let dialled: boolean;

  /** It names a process to be ended, and a socket of ours at which nobody ever greets. */
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'skep-address-'));
    where = places({ env: {}, home, platform: 'linux', temp: home });
    ended = [];
    client = testClient(where, {
      isAlive: ({ pid }) => pid === chosen.pid && ended.length === 0,
      end: (pid, how) => ended.push([pid, how]),
    });
    const ours = join(home, 'ours');
    await mkdir(ours, { mode: 0o700 });
    await mkdir(where.supervisorDir, { recursive: true, mode: 0o700 });
    const { state } = whatIsKept(where);
    await writeAddress(where, { ...chosen, state, socket: join(ours, 'x.sock'), watcher: chosen });
    dialled = false;
    silent = createServer((peer) => {
      dialled = true;
      peer.destroy();
    });
    await new Promise<void>((resolve) => silent.listen(join(ours, 'x.sock'), resolve));
  });
  afterEach(async () => {
    await new Promise<void>((resolve) => void silent.close(() => resolve()));
    await rm(home, { recursive: true });
  });

  const theirs: readonly [string, () => string][] = [
    ['file', () => join(where.supervisorDir, 'address.json')],
    ['directory', () => where.supervisorDir],
    ['state directory', () => where.stateDir],
  ];
  test.each(theirs)('cannot choose a process that a removal of everything ends: %s', async (_, path) => {
    await chown(path(), 65_534, 65_534);
    await client.rest({ signal }).catch((error: unknown) => {
      expect(error).toMatchObject({ message: expect.stringContaining('belongs to another user') });
    });
    expect(ended).toEqual([]);
    expect(dialled).toBe(false);
  });
  test.each(theirs)('cannot have a process killed as one that hangs: %s', async (_, path) => {
    await chown(path(), 65_534, 65_534);
    await expect(client.settle({ signal })).rejects.toMatchObject({ code: 'supervisor/unreachable' });
    expect(ended).toEqual([]);
    expect(dialled).toBe(false);
  });
  test('is not followed through a link either', async () => {
    const file = join(where.supervisorDir, 'address.json');
    await rename(file, join(home, 'elsewhere.json'));
    await symlink(join(home, 'elsewhere.json'), file);
    expect(readAddress(where, 0)).toBeUndefined();
  });
});
