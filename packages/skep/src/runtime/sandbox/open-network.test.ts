import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Bubblewrap } from './confine.ts';
import { openNetwork, type Opening } from './open-network.ts';
import { makeNetwork, type NetworkTools } from './own-network.ts';
import { isHeld, makePipes } from './pipes.ts';
import { workloadPlaces, type WorkloadPlaces } from './places.ts';

let places: WorkloadPlaces;
beforeEach(async () => {
  places = workloadPlaces(await mkdtemp(path.join(tmpdir(), 'skep-network-')));
});
afterEach(() => rm(places.directory, { recursive: true }));

/** Tools of which unshare and slirp4netns do this; nothing of the machine is changed. */
async function tools(unshare: string, slirp = 'echo 1 >&3'): Promise<NetworkTools & { slirp: object }> {
  const program = async (name: string, script: string): Promise<string> => {
    const file = path.join(places.directory, name);
    await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return file;
  };
  return {
    unshare: await program('unshare', unshare),
    nsenter: '/does/not/exist',
    ip: '/does/not/exist',
    slirp: { program: await program('slirp4netns', slirp) },
  };
}

const READY = 'echo ready; read -r _; : >ended';

async function open(unshare: string, slirp?: string): Promise<Opening> {
  const made = await tools(unshare, slirp);
  const bubblewrap = { inherited: [], setpriv: undefined, network: made } as const;
  return openNetwork({
    bubblewrap: bubblewrap as unknown as Bubblewrap,
    network: { kind: 'connected', tools: made, slirp: path.join(places.directory, 'slirp4netns') },
    node: process.execPath,
    places,
    ports: [],
    pipes: makePipes(places, true),
  });
}

test('a network is held until it is disposed of', async () => {
  const ended = path.join(places.directory, 'ended');
  const made = await tools(READY.replace('ended', ended));
  const network = await makeNetwork(made, { asRoot: false, kind: 'connected', inherited: [] });
  expect(process.kill(network.pid, 0)).toBe(true);
  expect(existsSync(ended)).toBe(false);
  network[Symbol.dispose]();
  await vi.waitFor(() => expect(existsSync(ended)).toBe(true));
});

test.each([
  ['unshare failed: Operation not permitted', 'echo "unshare failed: Operation not permitted" >&2; exit 1'],
  ['it gave no reason', 'exit 1'],
])('a network that cannot be made is none, because %s', async (why, script) => {
  await using opening = await open(script);
  await expect(opening.made).rejects.toMatchObject({
    code: 'runtime/start-failed',
    message: `its network cannot be made: ${why}`,
  });
  await expect(opening.connected).rejects.toMatchObject({ code: 'runtime/start-failed' });
});

test('what serves a network is bound to the pipe of its workload, which this program holds meanwhile', async () => {
  {
    await using opening = await open(READY, 'echo 1 >&3; exec cat <&4 >served');
    expect(await opening.connected).toEqual(['gate']);
    expect(isHeld(places.life)).toBe(true);
  }
  expect(isHeld(places.life)).toBe(false);
});

test('a start that is given up waits for what it has begun, and leaves nothing', async () => {
  const opening = await open(READY, 'exit 1');
  await opening[Symbol.asyncDispose]();
  expect(isHeld(places.life)).toBe(false);
  await expect(opening.connected).rejects.toMatchObject({ code: 'runtime/start-failed' });
});

test('without a network of its own there is nothing to wait for', async () => {
  const bubblewrap = { inherited: [], setpriv: undefined } as unknown as Bubblewrap;
  const wanted = { bubblewrap, node: process.execPath, places, ports: [], pipes: Promise.resolve() };
  await using opening = openNetwork({ ...wanted, network: undefined });
  expect([await opening.made, await opening.connected]).toEqual([undefined, []]);
});
