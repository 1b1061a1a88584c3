import { memoryStore } from '@skep/auth/sign-in/memory-store.fixture.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { saveRunConfig } from '../run-config/file.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { clearAddress, readAddress, whatIsKept, writeAddress, type Address } from './address.ts';
import { testClient } from './client.fixture.ts';
import { connect } from './connect.ts';
import type { SupervisorClient } from './client.ts';
import { Host } from './host.ts';
import type { Greeting } from './protocol.ts';
import { testServer } from './server.fixture.ts';

const self = { pid: process.pid, started: 'me' };
const signal = new AbortController().signal;
const done = Promise.resolve();

let home: string;
let where: ReturnType<typeof places>;
let ending: AbortController;
let served: Promise<void>;
let runtime: MemoryRuntime;
let client: SupervisorClient;
let isTheOne: boolean;
let alive: Set<number>;
let ended: [number, string][];
let groupless: number | undefined;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-client-'));
  where = places({ env: {}, home, platform: 'linux', temp: home });
  runtime = new MemoryRuntime();
  ending = new AbortController();
  served = done;
  isTheOne = true;
  alive = new Set();
  ended = [];
  groupless = undefined;
  client = openClient();
});
afterEach(async () => {
  ending.abort();
  await served;
  await rm(home, { recursive: true });
});

function openClient(): SupervisorClient {
  return testClient(where, {
    lacksGroups: ({ pid }) => pid === groupless,
    isAlive: (other) => alive.has(other.pid),
    end: (pid, how) => ended.push([pid, how]),
  });
}

async function supervisor(greeting: Partial<Greeting> = {}): Promise<Host> {
  const host = new Host({
    places: where,
    openRuntime: async () => runtime,
    version: '1',
    connectRuntime: async () => runtime,
    startProxy: async ({ port }) => ({
      url: 'http://x/mcp',
      port,
      greet: async () => ({}),
      behind: () => () => {},
      backendEnded() {},
      backendStarted() {},
      close: async () => {},
    }),
    home: '/home/me',
    owner: 'me',
    clock: { ...systemClock, sleep: async () => {} },
    random: (min) => min,
    fetch,
    self,
    isAlive: () => true,
    terminate() {},
    log: silentLog,
    secretsOf: async () => ({}),
    forgetSecrets: async () => {},
    signIns: async () => memoryStore(),
    openWorkloadLog: async () => ({ log: silentLog, close() {} }),
  });
  const up = await testServer({
    places: where,
    host,
    isTheOne: async () => isTheOne,
    signal: ending.signal,
    greets: greeting,
  });
  served = up.over;
  return host;
}

async function socket(): Promise<string> {
  return readAddress(where, process.getuid?.())?.socket ?? '';
}

async function save(name: string): Promise<void> {
  const config = { name, image: 'fake:1', transport: 'stdio', port: 4001 };
  await saveRunConfig(where, decodeRunConfig(config, 'test'));
}

describe('over the socket', () => {
  test('a start tells its steps and gives the endpoint', async () => {
    const host = await supervisor();
    await save('a1');
    const steps: string[] = [];
    const tell = (event: { kind: string; title?: string }): unknown => steps.push(event.title ?? event.kind);
    expect(await client.start('a1', { signal, tell })).toMatchObject({ url: 'http://x/mcp', port: 4001 });
    expect(steps).toEqual(['Starting a1', 'Waiting for a1 to answer']);
    expect(await client.stop('a1', 0, { signal })).toBe(true);
    await client.remove('a1', { signal });
    await host.release();
  });
  test('what was begun before a call is what that call uses, and what no call used is left', async () => {
    const host = await supervisor();
    await save('a1');
    client.wake(signal);
    client.close();
    client = openClient();
    client.wake(signal);
    expect(await client.start('a1', { signal })).toMatchObject({ port: 4001 });
    // The second call connects by itself.
    await client.remove('a1', { signal });
    await host.release();
  });
  test('an error keeps its code, message and hint', async () => {
    await supervisor();
    await expect(client.start('nobody', { signal })).rejects.toMatchObject({
      code: 'workload/not-found',
      message: 'workload "nobody" not found',
    });
  });
  test('the socket and its address are for its user alone', async () => {
    await supervisor();
    const mode = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
    expect(await mode(await socket())).toBe(0o600);
    expect(await mode(where.supervisorDir)).toBe(0o700);
    expect(await mode(join(where.supervisorDir, 'address.json'))).toBe(0o600);
  });
  test('rest ends a supervisor that hosts nothing, after it has answered, and nothing of it is left', async () => {
    await supervisor();
    await client.rest({ signal });
    await served;
    await expect(stat(where.supervisorDir)).rejects.toThrow('ENOENT');
  });
  test('rest leaves one that hosts something, and does not wait for its end', async () => {
    const host = await supervisor();
    await save('a1');
    await client.start('a1', { signal });
    alive.add(self.pid);
    await client.rest({ signal });
    expect(host.busyWith).toEqual(['a1']);
    await client.remove('a1', { signal });
    await host.release();
  });
  test('a socket that vanished is made again, and its supervisor is found', async () => {
    await supervisor();
    const before = await socket();
    await rm(where.supervisorDir, { recursive: true });
    await vi.waitFor(async () => expect(await socket()).not.toBe(''), { timeout: 10_000 });
    await client.settle({ signal });
    expect(await socket()).not.toBe(before);
  });
  test('a directory that was opened to others is closed again, and its supervisor is found', async () => {
    await supervisor();
    const before = await socket();
    await chmod(where.supervisorDir, 0o755);
    await vi.waitFor(async () => expect(await socket()).not.toBe(before), { timeout: 8_000 });
    await client.settle({ signal });
  });
  test('a supervisor that is not the only one any more ends, and leaves the other one its address', async () => {
    await supervisor();
    const other = { ...self, pid: 4711, state: whatIsKept(where).state, socket: '/other/x.sock' };
    isTheOne = false;
    await writeAddress(where, other);
    await served;
    expect(readAddress(where, process.getuid?.())).toEqual(other);
  });
  test('a state directory whose path is too long for a socket has it in a private directory', async () => {
    const deep = join(home, 'd'.repeat(120));
    where = places({ env: { XDG_STATE_HOME: deep }, home, platform: 'linux', temp: home });
    client = openClient();
    await supervisor();
    expect(dirname(dirname(await socket()))).toBe(home);
    expect((await stat(dirname(await socket()))).mode & 0o777).toBe(0o700);
    await client.rest({ signal });
    await served;
    expect((await readdir(home)).filter((name) => name.startsWith('skep-'))).toEqual([]);
  });
});

describe('what a dead supervisor left', () => {
  const dead = { pid: 4711, started: 'then' };
  async function left(more: Partial<Address>): Promise<void> {
    await mkdir(where.supervisorDir, { recursive: true, mode: 0o700 });
    const { state } = whatIsKept(where);
    await writeAddress(where, { ...dead, state, socket: join(where.supervisorDir, 'a.sock'), ...more });
    await writeFile(join(where.supervisorDir, 'a.sock'), '');
  }

  test('is taken over', async () => {
    await left({});
    await clearAddress(where, process.getuid?.());
    expect(await readdir(where.supervisorDir)).toEqual([]);
    await supervisor();
    await client.settle({ signal });
  });
  test('is cleared away by rest, and a watcher that waits is ended', async () => {
    await left({ watcher: { pid: 4712, started: 'then' } });
    alive.add(4712);
    const resting = client.rest({ signal });
    await vi.waitFor(() => expect(ended).toEqual([[4712, 'SIGTERM']]));
    alive.delete(4712);
    await resting;
    expect(await readdir(where.supervisorDir)).toEqual([]);
  });
  test('is ended by rest though its watcher has just started it again', async () => {
    await left({ watcher: { pid: 4712, started: 'then' } });
    alive.add(4712);
    const resting = client.rest({ signal });
    await vi.waitFor(() => expect(ended).toEqual([[4712, 'SIGTERM']]));
    await supervisor();
    alive.delete(4712);
    await resting;
    await served;
    await expect(stat(join(where.supervisorDir, 'address.json'))).rejects.toThrow('ENOENT');
  });
  test('is nothing of ours when it came with a copy of another state directory', async () => {
    const elsewhere = join(home, 'other.sock');
    await writeFile(elsewhere, '');
    await left({ state: '/home/other/state', socket: elsewhere, watcher: { pid: 4712, started: 'then' } });
    alive.add(4712);
    await client.rest({ signal });
    await clearAddress(where, process.getuid?.());
    expect(ended).toEqual([]);
    await stat(elsewhere);
  });
});

describe('what does not behave like a supervisor', () => {
  let fake: Server | undefined;
  afterEach(() => new Promise<void>((resolve) => (fake ? fake.close(() => resolve()) : resolve())));

  async function listen(speak: (socket: Socket) => void, more: Partial<Address> = {}): Promise<void> {
    await mkdir(where.supervisorDir, { recursive: true, mode: 0o700 });
    const { state } = whatIsKept(where);
    const address = { ...self, state, socket: join(where.supervisorDir, 'fake.sock'), ...more };
    await writeAddress(where, address);
    fake = createServer(speak);
    await new Promise<void>((resolve) => fake?.listen(address.socket, resolve));
  }

  test.each(['not json\n', '{"hello":1}\n', '[]\n'])(
    'a greeting like %j is refused, and the connection ended',
    async (greeting) => {
      let over: Promise<unknown> | undefined;
      await listen((peer) => {
        over = once(peer, 'close');
        peer.resume().write(greeting);
      });
      await expect(client.settle({ signal })).rejects.toMatchObject({ code: 'supervisor/protocol' });
      await over;
    },
  );
  test('one that does not greet is left alone by whoever only looks, in the time that has', async () => {
    let over: Promise<unknown> | undefined;
    await listen((peer) => void (over = once(peer.resume(), 'close')));
    alive.add(self.pid);
    const looking = {
      places: where,
      uid: process.getuid?.(),
      platform: 'linux',
      isAlive: () => true,
      lacksGroups: () => false,
      end: (pid: number, how: string) => ended.push([pid, how]),
    } as const;
    expect(await connect(looking, AbortSignal.timeout(100))).toBeUndefined();
    await over;
    expect(ended).toEqual([]);
  });
  test('the supervisor of another state directory is never asked for anything', async () => {
    const heard: string[] = [];
    const greeting = { skep: 'supervisor', version: '1.0.0', ...self, state: '/other', data: '/other' };
    await listen((peer) => {
      peer.write(`${JSON.stringify(greeting)}\n`);
      peer.on('data', (chunk) => heard.push(String(chunk)));
      peer.on('error', () => peer.destroy());
    });
    await expect(client.remove('a', { signal })).rejects.toMatchObject({ code: 'supervisor/unreachable' });
    expect(heard).toEqual([]);
  });
  test('one of another version that dies when asked to retire is replaced', async () => {
    const { state, data } = whatIsKept(where);
    const greeting = { skep: 'supervisor', version: '0.9.0', ...self, state, data };
    await listen((peer) => {
      peer.write(`${JSON.stringify(greeting)}\n`);
      peer.on('error', () => peer.destroy());
      peer.once('data', () => void supervisor().then(() => peer.destroy()));
    });
    await client.settle({ signal });
  });
  /** One of another version, or that lacks a group, which is there again each time it was asked to retire. */
  async function standing(greets: Partial<Greeting>, onRetire: (times: number) => Promise<unknown>) {
    const { state, data } = whatIsKept(where);
    const greeting = { skep: 'supervisor', version: '1.0.0', ...self, state, data, ...greets };
    let times = 0;
    await listen((peer) => {
      peer.write(`${JSON.stringify(greeting)}\n`);
      peer.on('error', () => peer.destroy());
      peer.once('data', (chunk) => {
        const retires = String(chunk).includes('"retire"');
        if (retires) times += 1;
        void (retires ? onRetire(times) : done).then(() =>
          peer.end(`${JSON.stringify({ result: { ending: true } })}\n`),
        );
      });
    });
    return () => times;
  }
  test('one of a newer version that comes back stays: the command that uses it would replace ours in turn', async () => {
    const times = await standing({ version: '9.0.0' }, () => done);
    await expect(client.settle({ signal })).rejects.toMatchObject({
      code: 'supervisor/unreachable',
      message: expect.stringContaining('9.0.0; its supervisor stays, and this is the older Skep 1.0.0'),
      hint: expect.stringContaining('one version'),
    });
    await expect(client.remove('a1', { signal })).rejects.toMatchObject({ code: 'supervisor/unreachable' });
    expect(times()).toBe(1);
  });
  test('one of an older version that comes back is replaced again', async () => {
    const times = await standing({ version: '0.9.0' }, (time) => (time === 2 ? supervisor() : done));
    await client.settle({ signal });
    expect(times()).toBe(2);
  });
  test('one that is not in a group of this command is replaced, and no second time', async () => {
    groupless = 4711;
    const times = await standing({ pid: 4711 }, () => supervisor());
    await client.settle({ signal });
    groupless = self.pid;
    await client.settle({ signal });
    expect(times()).toBe(1);
  });
  test('a supervisor that keeps its data elsewhere is refused by name', async () => {
    await supervisor({ data: '/elsewhere' });
    await expect(client.settle({ signal })).rejects.toMatchObject({
      code: 'supervisor/unreachable',
      message: expect.stringContaining('"/elsewhere"'),
    });
  });
  test('a socket where others may write is not even dialled', async () => {
    const open = join(home, 'open');
    await mkdir(open, { mode: 0o777 });
    await chmod(open, 0o777);
    let dialled = false;
    await listen(() => (dialled = true), { socket: join(open, 'fake.sock') });
    await expect(client.settle({ signal })).rejects.toMatchObject({ code: 'supervisor/unreachable' });
    expect(dialled).toBe(false);
  });
  test.each([
    ['a file', (path: string) => writeFile(path, ''), 'not a directory'],
    ['a link', (path: string) => symlink(home, path), 'not a directory'],
  ])('%s in place of its directory is refused', async (_, make, reason) => {
    await mkdir(where.stateDir, { recursive: true });
    await make(where.supervisorDir);
    await expect(client.settle({ signal })).rejects.toMatchObject({
      code: 'supervisor/unreachable',
      message: expect.stringContaining(reason),
    });
  });
  test.skipIf(process.getuid?.() !== 0)('a directory of another user is refused', async () => {
    await mkdir(where.supervisorDir, { recursive: true });
    await chown(where.supervisorDir, 65_534, 65_534);
    await expect(client.settle({ signal })).rejects.toMatchObject({
      message: expect.stringContaining('belongs to another user'),
    });
  });
  test.skipIf(process.getuid?.() !== 0).each(['stateDir', 'dataDir'] as const)(
    'the %s of another user is left as it is',
    async (which) => {
      await mkdir(where[which], { recursive: true });
      await chown(where[which], 65_534, 65_534);
      await expect(client.settle({ signal })).rejects.toMatchObject({
        message: expect.stringContaining('belongs to another user'),
      });
      expect(await readdir(where[which])).toEqual([]);
    },
  );
  test('a supervisor that cannot come up is an error that names its log', async () => {
    await expect(client.settle({ signal })).rejects.toMatchObject({
      code: 'supervisor/unreachable',
      hint: expect.stringContaining('supervisor.log'),
    });
  });
});

describe('a supervisor that dies while it works', () => {
  /** Ends every connection after the greeting until it has been asked `times`, then hosts like any other. */
  async function dying(times: number): Promise<readonly string[]> {
    const asked: string[] = [];
    const { state, data } = whatIsKept(where);
    await mkdir(where.supervisorDir, { recursive: true, mode: 0o700 });
    const address = { ...self, state, socket: join(where.supervisorDir, 'dying.sock') };
    await writeAddress(where, address);
    const greeting = { skep: 'supervisor', version: '1.0.0', ...self, state, data };
    const server = createServer((peer) => {
      peer.on('error', () => peer.destroy());
      peer.write(`${JSON.stringify(greeting)}\n`);
      peer.on('data', (chunk) => {
        const { op } = JSON.parse(String(chunk)) as { op: string };
        asked.push(op);
        if (asked.length <= times) {
          peer.destroy();
        } else {
          server.close();
          peer.end(`${JSON.stringify({ result: { stopped: false } })}\n`);
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(address.socket, resolve));
    return asked;
  }

  test('is asked again for a removal', async () => {
    const asked = await dying(1);
    await client.remove('a', { signal });
    expect(asked).toEqual(['remove', 'remove']);
  });
  test('is asked again for a stop, which the one before may have done', async () => {
    const asked = await dying(2);
    expect(await client.stop('a', 0, { signal })).toBe(true);
    expect(asked).toEqual(['stop', 'stop', 'stop']);
  });
});
