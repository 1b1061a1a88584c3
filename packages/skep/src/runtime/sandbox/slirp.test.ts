import { createServer } from 'node:net';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectNetwork, forwardPort } from './slirp.ts';
import { makePipes } from './pipes.ts';
import { workloadPlaces, type WorkloadPlaces } from './places.ts';

let places: WorkloadPlaces;
beforeEach(async () => {
  places = workloadPlaces(await mkdtemp(path.join(tmpdir(), 'skep-network-')));
  await makePipes(places, false);
});
afterEach(() => rm(places.directory, { recursive: true }));

/** Connects by a slirp4netns that does this when it is to confine itself; answers with how it was called. */
async function connect(hardened: string, asRoot: boolean): Promise<readonly string[]> {
  const slirp = path.join(places.directory, 'slirp4netns');
  const calls = path.join(places.directory, 'calls');
  const ready = 'echo 1 >&3';
  const script = `echo "$*" >>${calls}; case "$*" in *--enable-sandbox*) ${hardened} ;; *) ${ready} ;; esac`;
  await writeFile(slirp, `#!/bin/sh\n${script.replace('READY', ready)}\n`, { mode: 0o755 });
  const unshare = path.join(places.directory, 'unshare');
  await writeFile(unshare, '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n', {
    mode: 0o755,
  });
  await connectNetwork({
    tools: { unshare },
    slirp,
    asRoot,
    places,
    pid: process.pid,
    inherited: [],
  });
  return (await readFile(calls, 'utf8')).trim().split('\n');
}

const HARDENED = '--enable-sandbox --enable-seccomp';

describe('what reads the packets of a server', () => {
  test.each([true, false])('confines itself (as root: %s)', async (asRoot) => {
    expect(await connect('READY', asRoot)).toEqual([expect.stringContaining(HARDENED)]);
  });

  test('does not run as root where it cannot confine itself', async () => {
    await expect(connect('exit 1', true)).rejects.toMatchObject({
      code: 'runtime/start-failed',
      message: expect.stringContaining('as root it must be able to confine itself'),
    });
    expect(await readFile(path.join(places.directory, 'calls'), 'utf8')).toMatch(/^.*--enable-sandbox.*\n$/);
  });

  test('runs without that as an ordinary user, who has nothing to lose by it but what a server has', async () => {
    expect(await connect('exit 1', false)).toEqual([
      expect.stringContaining(HARDENED),
      expect.not.stringContaining('--enable'),
    ]);
  });

  test.each([true, false])('never reaches the loopback of the machine (as root: %s)', async (asRoot) => {
    for (const call of await connect('READY', asRoot)) expect(call).toContain('--disable-host-loopback');
  });
});

test.each([
  ['ends before it answers', ''],
  ['says something else', 'no'],
])('a port is not forwarded where slirp4netns %s', async (_, answer) => {
  const server = createServer((socket) => socket.resume().end(answer)).listen(
    path.join(places.directory, 'network.sock'),
  );
  await once(server, 'listening');
  try {
    const port = { hostIp: '127.0.0.1', hostPort: 4_000, containerPort: 80 };
    await expect(forwardPort(places, port)).rejects.toMatchObject({
      code: 'runtime/start-failed',
      message: 'port 4000 of 127.0.0.1 cannot be forwarded: slirp4netns has ended',
    });
  } finally {
    const closed = once(server, 'close');
    server.close();
    await closed;
  }
});
