import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Mounted } from './change-paths.ts';
import { offeredPath } from './offer-path.ts';

let home: string;
const socket = createServer();
beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'skep-offer-')));
  for (const folder of ['notes', '.ssh', 'project/.git', 'a b'])
    await mkdir(join(home, folder), { recursive: true });
  for (const file of ['notes/a.txt', '.ssh/config', 'id_ed25519', 'server.pem', 'api-token', 'env.key']) {
    await writeFile(join(home, file), '');
  }
  await symlink(join(home, 'notes'), join(home, 'link'));
  await symlink(join(home, '.ssh'), join(home, 'innocent'));
  await symlink('/etc', join(home, 'settings'));
  socket.listen(join(home, 'engine.sock'));
  await once(socket, 'listening');
});
afterAll(async () => {
  socket.close();
  await rm(home, { recursive: true });
});

const config = (read: readonly string[] = [], more: Partial<Mounted> = {}): Mounted => ({
  name: 'a1',
  permission_profile: { read: read.map((one) => one.replaceAll('HOME', home)) },
  volumes: [],
  ...more,
});
const offered = async (path: string, wantsWrite = false, mounted = config()): Promise<string | undefined> => {
  const right = await offeredPath({ path: path.replace('HOME', home), wantsWrite }, mounted, home);
  return right && `${right.path.replace(home, 'HOME')}${right.readOnly === true ? '' : ':rw'}`;
};

test('the home directory is not offered by another name of it, and what lies in it is', async () => {
  const link = `${home}-by-link`;
  await symlink(home, link);
  try {
    const right = (path: string) => offeredPath({ path, wantsWrite: false }, config(), link);
    expect(await right(home)).toBeUndefined();
    expect(await right(link)).toBeUndefined();
    expect(await right(`${home}/notes`)).toMatchObject({ path: `${home}/notes` });
  } finally {
    await rm(link);
  }
});

describe('a path that a server named', () => {
  test.each([
    ['HOME/notes', 'HOME/notes'],
    ['HOME/notes/a.txt', 'HOME/notes/a.txt'],
    ['HOME/link', 'HOME/link'],
  ])('is offered where it is an ordinary one of the user: %s', async (path, right) => {
    expect(await offered(path)).toBe(right);
    expect(await offered(path, true)).toBe(`${right}:rw`);
  });

  test.each([
    ['the root', '/'],
    ['the home directory', 'HOME'],
    ['what is above it', '/tmp'],
    ['what is not there', 'HOME/nowhere'],
    ['keys', 'HOME/.ssh'],
    ['what is in a hidden directory', 'HOME/.ssh/config'],
    ['a repository', 'HOME/project/.git'],
    ['a private key', 'HOME/id_ed25519'],
    ['a certificate', 'HOME/server.pem'],
    ['a key', 'HOME/env.key'],
    ['a token', 'HOME/api-token'],
    ['a link to keys', 'HOME/innocent'],
    ['a link to the system', 'HOME/settings'],
    ['a socket', 'HOME/engine.sock'],
    ['the system', '/etc/passwd'],
    ['a device', '/dev/null'],
    ['the engine', '/var/run/docker.sock'],
    ['what climbs', 'HOME/notes/../.ssh'],
    ['what a shell would split', 'HOME/a b'],
    ['what a shell would run', 'HOME/$(id)'],
    ['what steers a terminal', 'HOME/\u001B[31m'],
    ['what is relative', 'notes'],
  ])('is never offered: %s', async (_, path) => expect(await offered(path)).toBeUndefined());

  test('is offered to be written where it is seen already, by its name here', async () => {
    expect(await offered('/in/a.txt', true, config(['HOME/notes:/in']))).toBe('HOME/notes:rw');
    expect(await offered('/in/a.txt', false, config(['HOME/notes:/in']))).toBeUndefined();
    expect(await offered('HOME/notes/a.txt', false, config(['HOME/notes']))).toBeUndefined();
  });
});
