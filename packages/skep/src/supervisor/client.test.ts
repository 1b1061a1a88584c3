import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { mkdirSync } from 'node:fs';
import { places } from '@skep/core/files/places.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeRunConfig } from '../run-config/decode.ts';
import { saveRunConfig } from '../run-config/file.ts';
import { MemoryRuntime } from '../runtime/memory/memory-runtime.ts';
import { SupervisorClient } from './client.ts';
import { systemClock } from './clock.ts';
import { Host } from './host.ts';
import { serve } from './server.ts';

const self = { pid: process.pid, started: 'me' };
const signal = new AbortController().signal;
const done = Promise.resolve();

let home: string;
let where: ReturnType<typeof places>;
let ending: AbortController;
let served: Promise<void>;
let runtime: MemoryRuntime;
let client: SupervisorClient;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-client-'));
  where = places({ env: {}, home, platform: 'linux', temp: home, uid: 0 });
  runtime = new MemoryRuntime();
  ending = new AbortController();
  served = done;
  client = new SupervisorClient({
    places: where,
    uid: process.getuid?.(),
    // Ends at once, without ever listening.
    program: { node: '/bin/false', entry: 'x', version: '1.0.0' },
    env: {},
    clock: systemClock,
    isAlive: () => false,
  });
});
afterEach(async () => {
  ending.abort();
  await served;
  await rm(home, { recursive: true });
});

async function supervisor(): Promise<Host> {
  const host = new Host({
    places: where,
    openRuntime: async () => runtime,
    startProxy: async ({ port }) => ({
      url: 'http://x/mcp',
      port,
      greet: async () => ({}),
      backendEnded() {},
      backendStarted() {},
      close: async () => {},
    }),
    owner: 'me',
    clock: { now: () => new Date(), sleep: async () => {} },
    random: (min) => min,
    fetch,
    self,
    isAlive: () => true,
    terminate() {},
    log: silentLog,
    openWorkloadLog: async () => ({ log: silentLog, close() {} }),
  });
  served = serve({
    socketPath: where.supervisorSocket,
    uid: process.getuid?.(),
    greeting: { skep: 'supervisor', version: '1.0.0', ...self },
    host,
    resume: { settled: done, complete: done },
    lingerMs: 60_000,
    signal: ending.signal,
    log: silentLog,
  });
  await listening(where.supervisorSocket);
  return host;
}

/** Until the socket is there with its final mode; `served` fails when it never will be. */
async function listening(path: string): Promise<void> {
  await Promise.race([
    served,
    vi.waitFor(async () => expect((await stat(path)).mode & 0o777).toBe(0o600), { interval: 5 }),
  ]);
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
  test('an error keeps its code, message and hint', async () => {
    await supervisor();
    await expect(client.start('nobody', { signal })).rejects.toMatchObject({
      code: 'workload/not-found',
      message: 'workload "nobody" not found',
    });
  });
  test('the socket is for its user alone', async () => {
    await supervisor();
    expect((await stat(where.supervisorSocket)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(where.supervisorSocket))).mode & 0o777).toBe(0o700);
  });
  test('rest ends a supervisor that hosts nothing, after it has answered', async () => {
    await supervisor();
    await client.rest({ signal });
    await served;
    await expect(stat(where.supervisorSocket)).rejects.toThrow();
  });
  test('a socket that a dead supervisor left is taken over', async () => {
    mkdirSync(dirname(where.supervisorSocket), { recursive: true, mode: 0o700 });
    await writeFile(where.supervisorSocket, '');
    await supervisor();
    await client.settle({ signal });
  });
});

describe('what does not behave like a supervisor', () => {
  let fake: Server | undefined;
  afterEach(() => new Promise<void>((resolve) => (fake ? fake.close(() => resolve()) : resolve())));

  function listen(speak: (socket: Socket) => void): Promise<void> {
    mkdirSync(dirname(where.supervisorSocket), { recursive: true, mode: 0o700 });
    fake = createServer(speak);
    return new Promise((resolve) => fake?.listen(where.supervisorSocket, resolve));
  }

  test.each(['not json\n', '{"hello":1}\n', '[]\n'])('a greeting like %j is refused', async (greeting) => {
    await listen((socket) => void socket.end(greeting));
    await expect(client.settle({ signal })).rejects.toMatchObject({ code: 'supervisor/protocol' });
  });
  test('a directory that others may enter is refused', async () => {
    mkdirSync(dirname(where.supervisorSocket), { recursive: true, mode: 0o755 });
    await expect(client.settle({ signal })).rejects.toMatchObject({ code: 'supervisor/unreachable' });
  });
  test('a supervisor that cannot come up is an error that names its log', async () => {
    await expect(client.settle({ signal })).rejects.toMatchObject({
      code: 'supervisor/unreachable',
      hint: expect.stringContaining('supervisor.log'),
    });
  });
});
