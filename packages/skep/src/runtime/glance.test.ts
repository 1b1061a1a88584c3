import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Surroundings } from './environment.ts';
import { glanceAtRuntimes } from './glance.ts';

/** A machine without engine and sandbox, beside what a variable says. */
async function machine(env: Surroundings['env'] = {}): Promise<Surroundings & { readonly home: string }> {
  const home = await mkdtemp(join(tmpdir(), 'skep-glance-'));
  onTestFinished(() => rm(home, { recursive: true }));
  return { env: { PATH: home, SKEP_RUNTIME: 'docker', ...env }, home, platform: 'linux', cacheDir: home };
}

async function listenAt(path: string): Promise<void> {
  const server = createServer((socket) => socket.destroy()).listen(path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
}

test('an engine that listens runs images and packages; servers that run elsewhere need none', async () => {
  const { home } = await machine();
  await listenAt(join(home, 'x.sock'));
  const here = await machine({ SKEP_DOCKER_SOCKET: join(home, 'x.sock') });
  expect(await glanceAtRuntimes(here)).toEqual({ image: 'yes', npm: 'yes', pypi: 'yes', remote: 'yes' });
});

test.each([
  ['a socket where nobody listens', 'unix:///nowhere/x.sock', 'no'],
  ['an engine on another machine', 'ssh://build.example', 'unknown'],
])('%s is not asked', async (_what, DOCKER_HOST, image) => {
  expect(await glanceAtRuntimes(await machine({ DOCKER_HOST }))).toMatchObject({ image, pypi: image });
});

test('a context of the docker command may lead to an engine', async () => {
  const here = await machine({ DOCKER_CONTEXT: 'elsewhere' });
  expect((await glanceAtRuntimes(here)).image).not.toBe('no');
});

test('a context is read from the home directory where the variable for its place is empty', async () => {
  const here = await machine({ DOCKER_CONFIG: '' });
  await mkdir(join(here.home, '.docker'));
  await writeFile(join(here.home, '.docker/config.json'), '{"currentContext":"elsewhere"}');
  expect((await glanceAtRuntimes(here)).image).not.toBe('no');
});

test('a configuration that is damaged is no failure', async () => {
  const here = await machine();
  await mkdir(join(here.home, '.docker'));
  await writeFile(join(here.home, '.docker/config.json'), '{');
  await expect(glanceAtRuntimes(here)).resolves.toMatchObject({ remote: 'yes' });
});

test('bubblewrap runs packages where it was proved to, and is tried where it was not', async () => {
  const here = await machine({ SKEP_RUNTIME: 'sandbox' });
  await writeFile(join(here.home, 'bwrap'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  const seen = await glanceAtRuntimes(here);
  expect(seen).toEqual({ image: 'no', npm: 'no', pypi: 'no', remote: 'yes' });
  await writeFile(join(here.cacheDir, 'sandbox-proof.json'), '{}');
  // Those of Python run on that of the system.
  const pypi = ['/usr/bin/python3', '/usr/local/bin/python3'].some((one) => existsSync(one)) ? 'yes' : 'no';
  expect(await glanceAtRuntimes(here)).toEqual({ ...seen, npm: 'yes', pypi });
  expect((await glanceAtRuntimes({ ...here, platform: 'darwin' })).npm).toBe('no');
});
