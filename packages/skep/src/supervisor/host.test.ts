import { memoryStore } from '@skep/auth/sign-in/memory-store.fixture.ts';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from '@skep/core/time/clock.ts';
import { places } from '@skep/core/files/places.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import type { Proxy, ProxyOptions } from '@skep/proxy/start.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { loadRunConfig, saveRunConfig } from '../run-config/file.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { Spares } from '../runtime/spares.ts';
import { Host } from './host.ts';
import type { HostDeps } from './host-deps.ts';
import { launch } from './launch.ts';
import type { StartEvent } from './protocol.ts';
import { RESTART } from './watch.ts';
import { resume, type Resume } from './resume.ts';
import { readStatus, writeStatus, type StatusWord } from './state.ts';

const self = { pid: process.pid, started: 'me' };
const never = new AbortController().signal;
const bare = {
  reference: 'fake:1',
  args: [],
  env: {},
  stdio: true,
  mounts: [],
  network: 'bridge',
  ports: [],
  privileged: false,
} as const;
const abortError = (signal: AbortSignal): Error => signal.reason as Error;

let home: string;
let where: ReturnType<typeof places>;
let runtime: MemoryRuntime;
let proxies: { options: ProxyOptions; restarts: number; closed: boolean }[];
let verbose: boolean[];
let slept: number[];
let alive: Set<number>;
let terminated: number[];
/** Sleeps resolve at once while true, else only when aborted. */
let timeFlies: boolean;
/** Ports that another program has taken since they were free. */
let takenPorts: readonly number[];
let drawn: (min: number) => number;
/** How servers that have tools are asked for them. */
let askForTools: Proxy['ask'];
let host: Host;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-host-'));
  where = places({ env: {}, home, platform: 'linux', temp: home });
  runtime = new MemoryRuntime();
  proxies = [];
  verbose = [];
  slept = [];
  alive = new Set([self.pid]);
  terminated = [];
  timeFlies = true;
  takenPorts = [];
  drawn = (min) => min + 1234;
  askForTools = undefined;
  host = newHost();
});
afterEach(async () => {
  await host.release();
  await rm(home, { recursive: true });
});

function newHost(more: Partial<HostDeps> = {}): Host {
  return new Host({
    places: where,
    openRuntime: async () => runtime,
    connectRuntime: async () => runtime,
    async startProxy(options) {
      if (takenPorts.includes(options.port)) throw new SkepError('proxy/port-busy');
      const proxy = { options, restarts: 0, closed: false };
      proxies.push(proxy);
      const capabilities = askForTools && { tools: {} };
      return {
        url: `http://127.0.0.1:${options.port}/mcp`,
        port: options.port,
        // A server that is not there any more, and one under a clock that stands, never answers.
        greet: async () =>
          timeFlies ? { serverInfo: { name: 'fake' }, capabilities } : new Promise(() => {}),
        ...(askForTools && { ask: askForTools }),
        behind: () => () => {},
        backendEnded() {},
        backendStarted: () => (proxy.restarts += 1),
        close: async () => void (proxy.closed = true),
      };
    },
    version: '9.9.9',
    home: '/home/me',
    owner: 'me',
    clock: {
      ...systemClock,
      async sleep(ms, signal = never) {
        slept.push(ms);
        signal.throwIfAborted();
        if (timeFlies) return;
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(abortError(signal))));
      },
    },
    random: (min) => drawn(min),
    fetch,
    self,
    isAlive: (other) => alive.has(other.pid),
    terminate(pid) {
      terminated.push(pid);
      alive.delete(pid);
    },
    log: silentLog,
    secretsOf: async () => ({}),
    forgetSecrets: async () => {},
    signIns: async () => memoryStore(),
    async openWorkloadLog({ debug }) {
      verbose.push(debug);
      return { log: silentLog, close() {} };
    },
    ...more,
  });
}

async function save(name: string, more: object = {}): Promise<void> {
  const text = { name, image: 'fake:1', image_is_ours: true, transport: 'stdio', port: 4001, ...more };
  await saveRunConfig(where, decodeRunConfig(text, 'test'));
}

function start(name: string, tell: (event: StartEvent) => void = () => {}): Promise<unknown> {
  return host.start(name, { how: 'start', tell, signal: never });
}

async function statusOf(name: string): Promise<StatusWord | undefined> {
  return (await readStatus(where, name))?.status;
}

async function claim(name: string, status: StatusWord, pid: number): Promise<void> {
  const now = new Date().toISOString();
  const process = { process_id: pid, process_started: 'then' };
  await writeStatus(where, name, { status, created_at: now, updated_at: now, ...process });
}

async function resumed(): Promise<Resume> {
  const isAlive = (other: { pid: number }): boolean => alive.has(other.pid);
  const clock = { ...systemClock, sleep: async () => {} };
  const taken = await resume({ host, places: where, clock, isAlive, signal: never, log: silentLog });
  await taken.settled;
  return taken;
}

describe('starting', () => {
  test('the server is told the version of Skep', async () => {
    await save('a1');
    await start('a1');
    expect(proxies[0]?.options.skepVersion).toBe('9.9.9');
  });

  test('has the proxy ask clients for tokens, with a secret that the server does not get', async () => {
    const oidc_config = { issuer: 'https://idp.example', scopes: [], audience: '' };
    await save('a1', { oidc_config, secrets: ['idp,target=SKEP_OIDC_CLIENT_SECRET', 'x,target=X'] });
    host = newHost({ secretsOf: async () => ({ SKEP_OIDC_CLIENT_SECRET: 'hush', X: '1' }) });
    await start('a1');
    expect(proxies[0]?.options.signIn).toEqual({
      issuer: 'https://idp.example',
      clientSecret: 'hush',
      allowHttp: false,
      allowPrivateIP: false,
    });
    expect(runtime.environments.get('a1')).toMatchObject({ X: '1' });
    expect(runtime.environments.get('a1')).not.toHaveProperty('SKEP_OIDC_CLIENT_SECRET');
  });

  test('has the proxy show the tools that were chosen, by the names that the file has now', async () => {
    const file = join(home, 'tools.json');
    const written = (name: string): Promise<void> =>
      writeFile(file, JSON.stringify({ toolsOverride: { read: { name } } }));
    await written('look');
    const saved = { tools_filter: ['look'], tools_override: { read: { name: 'see' } } };
    await save('a1', { ...saved, tools_override_path: file });
    await start('a1');
    expect(proxies[0]?.options.parts?.tools).toEqual({
      filter: ['look'],
      overrides: { read: { name: 'look' } },
    });
    await host.stop('a1', 0);
    await rm(file);
    await start('a1');
    expect(proxies[1]?.options.parts?.tools?.overrides).toEqual({ read: { name: 'see' } });
    await host.stop('a1', 0);
    await writeFile(file, '{"toolsOverride":{"read":{"nmae":"x"}}}');
    await expect(start('a1')).rejects.toMatchObject({
      code: 'config/invalid',
      message: `tools override "${file}": line 1: "toolsOverride.read" has an unknown key: "nmae"`,
    });
  });

  test('tells which tools of its settings the server does not have', async () => {
    const tools = ['read', 'write'].map((name) => ({ name, inputSchema: { type: 'object' } }));
    askForTools = async () => JSON.stringify({ jsonrpc: '2.0', id: 0, result: { tools } });
    await save('a1', {
      tools_filter: ['look', 'wrote', 'read', 'other'],
      tools_override: { read: { name: 'look' }, delete: { description: 'x' } },
    });
    const told: StartEvent[] = [];
    await start('a1', (event) => void told.push(event));
    expect(told.flatMap((event) => (event.kind === 'warning' ? [event.text] : []))).toEqual([
      'the server has no tool "delete", which --tools-override names; it has read, write',
      'the server has no tool "wrote", which --tools names; did you mean "write"?',
      'the server has no tool "read", which --tools names; clients see it as "look"',
      'the server has no tool "other", which --tools names; it has read, write',
    ]);
  });

  test('leaves nothing of a workload whose saved guard nobody can keep', async () => {
    await save('a1', { oidc_config: {} });
    await expect(start('a1')).rejects.toMatchObject({ code: 'usage/invalid-value' });
    expect(proxies).toEqual([]);
    expect(await runtime.inspect('a1')).toBeUndefined();
    expect(await statusOf('a1')).toBe('error');
  });

  test('gives the endpoint and says running', async () => {
    await save('a1');
    expect(await start('a1')).toEqual({
      url: 'http://127.0.0.1:4001/mcp',
      port: 4001,
      readiness: { is: 'answered', server: 'fake' },
    });
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'running', process_id: self.pid });
  });

  test('says running as soon as the server has answered, while it is asked for its tools', async () => {
    let said: StatusWord | undefined;
    askForTools = async () => {
      said = await vi.waitUntil(async () => (await statusOf('a1')) === 'running' && ('running' as const));
      return JSON.stringify({ jsonrpc: '2.0', id: 0, result: { tools: [] } });
    };
    await save('a1');
    await start('a1');
    expect(said).toBe('running');
  });

  test('says when the first workload is hosted, and a start that failed is none', async () => {
    let hosts = false;
    void host.hosting.then(() => (hosts = true));
    await save('a1', { port: 4001 });
    takenPorts = [4001];
    await expect(start('a1')).rejects.toMatchObject({ code: 'run/port-busy' });
    expect(hosts).toBe(false);
    takenPorts = [];
    await start('a1');
    await host.hosting;
  });

  test('logs every step of its proxy when the run asked for it, whatever process hosts it', async () => {
    await save('a1', { debug: true });
    await save('b1', { port: 4002 });
    await start('a1');
    await start('b1');
    expect(verbose).toEqual([true, false]);
  });
  test('a port that was drawn and taken meanwhile is drawn again, saved and told', async () => {
    await save('a1');
    takenPorts = [4001, 11_234];
    const told: StartEvent[] = [];
    const tell = (event: StartEvent): void => void told.push(event);
    const draws = [0, 1];
    drawn = (min) => min + 1234 + (draws.shift() ?? 0);
    const started = host.start('a1', { how: 'start', tell, signal: never, movable: true });
    await expect(started).resolves.toMatchObject({ url: 'http://127.0.0.1:11235/mcp', port: 11_235 });
    expect(await loadRunConfig(where, 'a1')).toMatchObject({ port: 11_235 });
    const url = 'http://127.0.0.1:11235/mcp';
    expect(told.filter(({ kind }) => kind === 'saved').at(-1)).toEqual({ kind: 'saved', name: 'a1', url });
    expect((await runtime.inspect('a1'))?.labels['skep.port']).toBe('11235');
  });
  test('a port that somebody relies on is never another one: who has taken it, and what to do, is told', async () => {
    await save('a1');
    takenPorts = [4001];
    await expect(start('a1')).rejects.toMatchObject({
      code: 'run/port-busy',
      message: 'port 4001 on 127.0.0.1, where the proxy of "a1" is to listen, is taken by another program',
      hint: expect.stringContaining('lsof -i :4001'),
    });
    expect(await runtime.inspect('a1')).toBeUndefined();
    expect(await loadRunConfig(where, 'a1')).toMatchObject({ port: 4001 });
  });
  test('a second start of a running workload changes nothing', async () => {
    await save('a1');
    await Promise.all([start('a1'), start('a1')]);
    expect(runtime.startsOf('a1')).toBe(1);
    expect(proxies).toHaveLength(1);
  });
  test('a server that crashes fails the start with its last lines and leaves no container and no proxy', async () => {
    await save('a1');
    timeFlies = false;
    runtime.crash = { exitCode: 3, says: 'Error: KEY is not set\n' };
    const lines: string[] = [];
    const crashed = start('a1', (event) => event.kind === 'output' && lines.push(event.line));
    await expect(crashed).rejects.toMatchObject({ code: 'run/crashed-at-start', detail: { exitCode: 3 } });
    expect(lines).toEqual(['Error: KEY is not set']);
    expect(await runtime.inspect('a1')).toBeUndefined();
    expect(proxies.every((proxy) => proxy.closed)).toBe(true);
    expect(await statusOf('a1')).toBe('error');
  });
  test('a server that somebody removes while its proxy opens has vanished', async () => {
    await save('a1');
    const startProxy = async ({ backend }: ProxyOptions): Promise<Proxy> => {
      await runtime.remove('a1');
      if (backend.kind === 'stdio') await backend.attach();
      throw new Error('it attached to nothing');
    };
    host = newHost({ startProxy });
    await expect(start('a1')).rejects.toMatchObject({
      code: 'run/crashed-at-start',
      message: 'workload "a1" vanished while it was started',
    });
  });
  test('an aborted start leaves nothing', async () => {
    await save('a1');
    timeFlies = false;
    const leaving = new AbortController();
    const started = host.start('a1', {
      how: 'start',
      tell: (event) => event.kind === 'step' && event.title.startsWith('Waiting') && leaving.abort(),
      signal: leaving.signal,
    });
    await expect(started).rejects.toThrow();
    expect(await runtime.inspect('a1')).toBeUndefined();
    expect(host.busyWith).toEqual([]);
  });
  test('a start whose command was killed says so, and nothing of a defect', async () => {
    await save('a1');
    timeFlies = false;
    const gone = new AbortController();
    const started = host.start('a1', {
      how: 'start',
      signal: gone.signal,
      tell: (event) => {
        if (event.kind === 'step' && event.title.startsWith('Waiting'))
          gone.abort(new SkepError('run/cancelled', { message: 'its start was interrupted' }));
      },
    });
    await expect(started).rejects.toMatchObject({ code: 'run/cancelled' });
    expect(await readStatus(where, 'a1')).toMatchObject({
      status: 'error',
      status_context: 'its start was interrupted',
    });
  });
  test.each(['stop', 'remove'] as const)('a %s ends a start that is under way', async (how) => {
    await save('a1');
    timeFlies = false;
    let waiting: () => void = () => {};
    const waits = new Promise<void>((resolve) => (waiting = resolve));
    const started = start(
      'a1',
      (event) => event.kind === 'step' && event.title.startsWith('Waiting') && waiting(),
    );
    await waits;
    const ended = how === 'stop' ? host.stop('a1', 0) : host.remove('a1');
    await expect(started).rejects.toMatchObject({
      code: 'run/cancelled',
      message: expect.stringContaining('while it started'),
    });
    await ended;
    expect(await statusOf('a1')).toBe(how === 'stop' ? 'stopped' : undefined);
    expect(await runtime.inspect('a1')).toBeUndefined();
    expect(host.busyWith).toEqual([]);
  });
  test('something of that name that is not ours is left alone', async () => {
    await save('a1');
    const labels = { 'skep.managed': 'true', 'skep.state': 'somebody else' };
    await runtime.create({ ...bare, name: 'a1', labels });
    await runtime.start('a1');
    await expect(start('a1')).rejects.toMatchObject({ code: 'run/name-taken' });
    expect(await runtime.inspect('a1')).toMatchObject({ state: 'running' });
  });
  test('an unknown name is not found', async () => {
    await expect(start('nobody')).rejects.toMatchObject({ code: 'workload/not-found' });
  });
});

describe('letting go', () => {
  test('of what is hosted does not wait for an engine that never answers about another one', async () => {
    await save('a1');
    await save('b1', { port: 4002 });
    await start('a1');
    let answer: () => void = () => {};
    runtime.inspect = () => new Promise((resolve) => (answer = () => resolve(undefined)));
    const hanging = host.remove('b1');
    const released = host.release();
    await vi.waitFor(() => expect(proxies[0]?.closed).toBe(true));
    answer();
    await hanging;
    await released;
  });
});

describe('a server that ends by itself', () => {
  test('is started again after 5 s, and the proxy hears of it', async () => {
    await save('a1');
    await start('a1');
    runtime.end('a1', 1);
    await vi.waitFor(() => expect(proxies[0]).toMatchObject({ restarts: 1 }));
    expect(slept).toContain(RESTART.firstDelayMs);
    await vi.waitFor(async () => expect(await statusOf('a1')).toBe('running'));
  });
  test('is made again where somebody removed it with the tools of the engine', async () => {
    await save('a1');
    await start('a1');
    await runtime.remove('a1');
    await vi.waitFor(() => expect(proxies[0]).toMatchObject({ restarts: 1 }));
    expect(await runtime.inspect('a1')).toMatchObject({ state: 'running' });
    await vi.waitFor(async () => expect(await statusOf('a1')).toBe('running'));
  });
  test('runs in the end where somebody started it again with the tools of the engine', async () => {
    await save('a1');
    await start('a1');
    await runtime.stop('a1');
    await nextTurn();
    await runtime.start('a1');
    await vi.waitFor(() => expect(proxies[0]).toMatchObject({ restarts: 1 }));
    expect(await runtime.inspect('a1')).toMatchObject({ state: 'running' });
    await vi.waitFor(async () => expect(await statusOf('a1')).toBe('running'));
  });
  test('is given up after ten attempts, with status error and the proxy closed', async () => {
    await save('a1');
    await start('a1');
    runtime.crash = { exitCode: 1, says: '' };
    runtime.end('a1', 1);
    await host.over('a1');
    expect(runtime.startsOf('a1')).toBe(1 + RESTART.maxAttempts);
    expect(await readStatus(where, 'a1')).toMatchObject({
      status: 'error',
      status_context: 'the server ended with exit status 1 and is not restarted any more; see skep logs a1',
    });
    expect(proxies[0]?.closed).toBe(true);
    expect(host.busyWith).toEqual([]);
  });
  test.each([
    ['forward', 8 * 3_600_000],
    ['back', -8 * 3_600_000],
  ])('is given up all the same while the clock is set %s, or the machine sleeps for hours', async (_, by) => {
    let set = 0;
    const clock = { ...systemClock, now: () => Date.now() + (set += by), sleep: async () => {} };
    host = newHost({ clock });
    await save('a1');
    await start('a1');
    runtime.crash = { exitCode: 1, says: '' };
    runtime.end('a1', 1);
    await host.over('a1');
    expect(runtime.startsOf('a1')).toBe(1 + RESTART.maxAttempts);
  });
});

describe('stopping and removing', () => {
  test('stop keeps the workload for a later start, which uses the same container', async () => {
    await save('a1');
    await start('a1');
    expect(await host.stop('a1', 0)).toBe(true);
    expect(await statusOf('a1')).toBe('stopped');
    expect(await host.stop('a1', 0)).toBe(false);
    await start('a1');
  });
  test('a stopped workload is not restarted', async () => {
    await save('a1');
    await start('a1');
    await host.stop('a1', 0);
    expect(slept).not.toContain(RESTART.firstDelayMs);
  });
  test('remove leaves no container, no image of ours and no file', async () => {
    await save('a1');
    await start('a1');
    await host.remove('a1');
    expect(await runtime.inspect('a1')).toBeUndefined();
    expect(runtime.discarded).toEqual(['fake:1']);
    expect(await readdir(where.runConfigsDir)).toEqual([]);
    expect(await readdir(where.statusesDir)).toEqual([]);
    await host.remove('a1');
  });
  test('remove takes what an earlier one left that was cut short, and nothing of somebody else', async () => {
    const removed = vi.spyOn(runtime, 'remove');
    await save('a1');
    await host.remove('a1');
    expect(removed.mock.calls).toEqual([['a1']]);
    await save('a1');
    await runtime.create({ ...bare, name: 'a1', labels: { 'skep.state': 'somebody else' } });
    await host.remove('a1');
    expect(removed.mock.calls).toEqual([['a1']]);
    expect(await runtime.inspect('a1')).toBeDefined();
  });
  test('remove does not need files that can be read', async () => {
    await save('a1');
    await start('a1');
    await writeFile(join(where.runConfigsDir, 'a1.json'), Buffer.from([0xff, 0xfe]));
    await writeFile(join(where.statusesDir, 'a1.json'), '{');
    await expect(host.stop('a1', 0)).rejects.toMatchObject({
      code: 'workload/state-unreadable',
      hint: expect.stringContaining('skep rm a1'),
    });
    await host.remove('a1');
    expect(await runtime.inspect('a1')).toBeUndefined();
    expect(await readdir(where.runConfigsDir)).toEqual([]);
    expect(await readdir(where.statusesDir)).toEqual([]);
  });
  test('an image that another workload uses stays', async () => {
    await save('a1');
    await save('b1', { port: 4002 });
    await host.remove('a1');
    expect(runtime.discarded).toEqual([]);
  });
  test('a workload that another process hosts is ended through that process', async () => {
    await save('a1');
    alive.add(99_999);
    await claim('a1', 'running', 99_999);
    await host.remove('a1');
    expect(terminated).toEqual([99_999]);
  });
  test('a workload that another process leaves is not waited for until that process ends', async () => {
    const command = 99_999;
    const leaving: Promise<void>[] = [];
    host = newHost({
      clock: systemClock,
      terminate: () => void leaving.push(claim('a1', 'removing', 0)),
    });
    await save('a1');
    alive.add(command);
    await claim('a1', 'starting', command);
    await host.stop('a1', 0);
    expect(leaving).toHaveLength(1);
    expect(await statusOf('a1')).toBe('stopped');
  });
  test('while the engine does not answer, nothing is forgotten', async () => {
    await save('a1');
    await start('a1');
    runtime.unreachable = true;
    await expect(host.remove('a1')).rejects.toThrow();
    expect(await readdir(where.runConfigsDir)).toEqual(['a1.json']);
    runtime.unreachable = false;
  });
  test.each(['hosted', 'not hosted'])(
    'a stop of what is %s is remembered while the engine is away',
    async (how) => {
      const openRuntime = async () => {
        await runtime.probe();
        return runtime;
      };
      host = newHost({ openRuntime });
      await save('a1');
      await start('a1');
      if (how === 'not hosted') {
        await host.release();
        host = newHost({ openRuntime });
        await claim('a1', 'running', 4_000_000);
      }
      runtime.unreachable = true;
      await expect(host.stop('a1', 0)).rejects.toMatchObject({
        code: 'runtime/engine-unreachable',
        hint: expect.stringContaining('"a1" is stopped as soon as that works'),
      });
      expect(await statusOf('a1')).toBe('stopping');
      runtime.unreachable = false;
      (await resumed()).finish('a1');
      await vi.waitFor(async () => expect(await statusOf('a1')).toBe('stopped'));
      expect(await runtime.inspect('a1')).toMatchObject({ state: 'exited' });
    },
  );
  test('a removal of what is stopped is remembered while the engine is away', async () => {
    const openRuntime = async () => {
      await runtime.probe();
      return runtime;
    };
    host = newHost({ openRuntime });
    await save('a1');
    await start('a1');
    await host.stop('a1', 0);
    runtime.unreachable = true;
    await expect(host.remove('a1')).rejects.toMatchObject({ code: 'runtime/engine-unreachable' });
    runtime.unreachable = false;
    await host.release();
    host = newHost({ openRuntime });
    (await resumed()).finish('a1');
    await vi.waitFor(async () => expect(await readdir(where.statusesDir)).toEqual([]));
    expect(await runtime.inspect('a1')).toBeUndefined();
  });
  test.each(['stop', 'remove'] as const)('a refused %s changes nothing, now and later', async (how) => {
    await save('a1');
    await start('a1');
    await host.release();
    const openRuntime = async (): Promise<never> => {
      throw new SkepError('workload/other-engine');
    };
    host = newHost({ openRuntime });
    const before = await readStatus(where, 'a1');
    const asked = how === 'stop' ? host.stop('a1', 0) : host.remove('a1');
    await expect(asked).rejects.toMatchObject({ code: 'workload/other-engine' });
    expect(await readStatus(where, 'a1')).toEqual(before);
    expect(await runtime.inspect('a1')).toMatchObject({ state: 'running' });
  });
  test('what was stopped meanwhile is changed, and does not run', async () => {
    await save('a1');
    await start('a1');
    await host.stop('a1', 0);
    const config = { ...(await loadRunConfig(where, 'a1')), port: 4002 };
    const changed = host.start('a1', { how: 'start', tell: () => {}, signal: never, config });
    await expect(changed).rejects.toMatchObject({ code: 'run/cancelled' });
    expect(await loadRunConfig(where, 'a1')).toMatchObject({ port: 4002 });
    expect(await statusOf('a1')).toBe('stopped');
  });
  test('that an engine cut short is finished, not undone, by whoever finds it', async () => {
    await save('a1');
    await start('a1');
    runtime.unreachable = true;
    await expect(host.remove('a1')).rejects.toThrow();
    expect(await statusOf('a1')).toBe('removing');
    runtime.unreachable = false;
    host = newHost();
    await claim('a1', 'removing', 4_000_000);
    await resumed();
    expect(await runtime.inspect('a1')).toBeUndefined();
    expect(await statusOf('a1')).toBeUndefined();
  });
});

describe('a workload that the command which asks has begun', () => {
  const asking = { pid: 99_999, started: 'then' };
  const begin = async (more: object = {}) => {
    await save('a1');
    alive.add(asking.pid);
    await claim('a1', 'starting', asking.pid);
    const config = { ...(await loadRunConfig(where, 'a1')), ...more };
    const secrets = async (): Promise<Record<string, string>> => ({});
    await launch(config, { runtime, owner: 'me', random: (min) => min, secrets, overlays: async () => [] });
  };
  const takeOver = (begunBy = asking): Promise<unknown> =>
    host.start('a1', { how: 'start', tell() {}, signal: never, begunBy });

  test('is taken over as it runs, and is ready once it has answered', async () => {
    await begin();
    const [before] = await runtime.list();
    expect(await takeOver()).toMatchObject({ port: 4001, readiness: {} });
    expect(await runtime.list()).toEqual([before]);
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'running', process_id: self.pid });
    expect(terminated).toEqual([]);
  });

  test('is made anew where it was begun from another description', async () => {
    await begin({ cmd_args: ['other'] });
    const [before] = await runtime.list();
    await takeOver();
    const [after] = await runtime.list();
    expect(after).toMatchObject({ name: 'a1', state: 'running' });
    expect(after?.labels['skep.spec']).not.toBe(before?.labels['skep.spec']);
  });

  test('is removed where it cannot be used', async () => {
    await begin();
    takenPorts = [4001];
    await expect(takeOver()).rejects.toMatchObject({ code: 'run/port-busy' });
    expect(await runtime.list()).toEqual([]);
  });

  test('is left to another process that hosts it', async () => {
    await begin();
    await claim('a1', 'running', asking.pid);
    await takeOver({ pid: 12_345, started: 'then' });
    expect(host.busyWith).toEqual([]);
  });

  test('is what another command gets that starts it meanwhile', async () => {
    const asked = Promise.withResolvers<void>();
    host = newHost({
      clock: {
        ...systemClock,
        async sleep() {
          asked.resolve();
          await nextTurn();
        },
      },
    });
    await begin();
    const started = start('a1');
    await asked.promise;
    expect(host.busyWith).toEqual(['a1']);
    await takeOver();
    expect(await started).toMatchObject({ port: 4001 });
    expect(proxies).toHaveLength(1);
  });

  test('is started by another command that was asked to meanwhile, where it was not handed over', async () => {
    const asked = Promise.withResolvers<void>();
    host = newHost({
      clock: {
        ...systemClock,
        async sleep() {
          asked.resolve();
          await nextTurn();
        },
      },
    });
    await begin();
    const started = start('a1');
    await asked.promise;
    alive.delete(asking.pid);
    expect(await started).toMatchObject({ port: 4001, readiness: {} });
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'running', process_id: self.pid });
  });

  test('is not waited for by whoever does not want it any more', async () => {
    timeFlies = false;
    await begin();
    const started = start('a1');
    started.catch(() => {});
    await expect.poll(() => slept.length).toBeGreaterThan(0);
    terminated = [];
    void host.stop('a1', 0).catch(() => {});
    await expect(started).rejects.toMatchObject({ code: 'run/cancelled' });
  });
});

describe('a workload whose foreground command was killed', () => {
  test('is taken up by the supervisor that runs already', async () => {
    const taken = await resumed();
    await save('a1');
    await claim('a1', 'running', 999_999);
    await taken.again();
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'running', process_id: self.pid });
    expect(proxies).toHaveLength(1);
    await taken.again();
    expect(proxies).toHaveLength(1);
  });
});

describe('after a crash of the supervisor', () => {
  test('what still runs is taken up without a restart, on the same port', async () => {
    await save('a1');
    await start('a1');
    const crashed = host;
    host = newHost();
    await claim('a1', 'running', 4_000_000);
    await resumed();
    expect(runtime.startsOf('a1')).toBe(1);
    expect(proxies.at(-1)?.options.port).toBe(4001);
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'running', process_id: self.pid });
    await crashed.release();
  });
  test('a server that was let go by the crash in the middle of its start is started anew', async () => {
    await save('a1');
    await start('a1');
    await host.release();
    runtime.interrupted.add('a1');
    host = newHost();
    await claim('a1', 'starting', 4_000_000);
    await resumed();
    expect(runtime.interrupted.has('a1')).toBe(false);
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'running', process_id: self.pid });
  });
  test('a server that learned for a command that was killed has no more than its own rights from then on', async () => {
    const outbound = { allow_host: ['api.example'], allow_port: [443] };
    await save('a1', { isolate_network: true, permission_profile: { network: { outbound } } });
    await host.start('a1', { how: 'start', tell: () => {}, signal: never, learns: true });
    expect(runtime.specOf('a1')).toMatchObject({ isolation: { allowAll: true } });
    await host.release();
    host = newHost();
    await claim('a1', 'running', 4_000_000);
    await resumed();
    expect(runtime.specOf('a1')).toMatchObject({ isolation: { allowAll: false, hosts: ['api.example'] } });
    expect(runtime.specOf('a1')).not.toHaveProperty('learns');
  });
  test('what should run and does not is started', async () => {
    await save('a1');
    await claim('a1', 'running', 4_000_000);
    await resumed();
    expect(runtime.startsOf('a1')).toBe(1);
  });
  test.each<StatusWord>(['stopped', 'error'])('what is %s stays so', async (status) => {
    await save('a1');
    await claim('a1', status, 0);
    await resumed();
    expect(runtime.startsOf('a1')).toBe(0);
    expect(await statusOf('a1')).toBe(status);
  });
  test('what somebody stops while it is being taken up stays stopped', async () => {
    await save('a1');
    await claim('a1', 'running', 4_000_000);
    // Whoever takes it up has read that it should run, and has not begun.
    const stopped = host.stop('a1', 0);
    const taken = host.start('a1', { how: 'resume', tell: () => {}, signal: never });
    await expect(taken).rejects.toMatchObject({ code: 'run/cancelled' });
    expect(await stopped).toBe(true);
    expect(runtime.startsOf('a1')).toBe(0);
    expect(await statusOf('a1')).toBe('stopped');
  });
  test('an interrupted removal is finished', async () => {
    await save('a1');
    await claim('a1', 'removing', 4_000_000);
    await resumed();
    expect(await statusOf('a1')).toBeUndefined();
  });
  test('what a living process hosts is left alone', async () => {
    await save('a1');
    alive.add(99_999);
    await claim('a1', 'running', 99_999);
    await resumed();
    expect(host.busyWith).toEqual([]);
  });
});

describe('what is made ahead of the next workload', () => {
  let spares: Spares;
  let left: number;
  beforeEach(() => {
    spares = new Spares();
    left = 0;
    const make = async () => ({ id: 'n', name: 'n', remove: async () => void (left -= 1) });
    const makeSpare = (): Promise<void> =>
      spares.make('engine', () => {
        left += 1;
        return make();
      });
    host = newHost({ spares, connectRuntime: async () => Object.assign(runtime, { makeSpare }) });
  });

  test('is there once one was started, and goes with the last one that is removed or stopped', async () => {
    for (const name of ['one', 'two']) {
      await save(name);
      await start(name);
    }
    await vi.waitFor(() => expect(left).toBe(1));
    await host.remove('one');
    expect(left).toBe(1);
    await host.stop('two', 0);
    expect(left).toBe(0);
  });

  test('goes when all is let go, though servers run on', async () => {
    await save('one');
    await start('one');
    await vi.waitFor(() => expect(left).toBe(1));
    await host.release();
    expect(left).toBe(0);
  });
});
