import { memoryStore } from '@skep/auth/sign-in/memory-store.fixture.ts';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { places } from '@skep/core/files/places.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../cli/context.ts';
import { loadRunConfig } from '../run-config/file.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { StartEvent } from '../supervisor/protocol.ts';
import { Host } from '../supervisor/host.ts';
import type { RunOperation } from '../supervisor/server.ts';
import { readStatus } from '../supervisor/state.ts';
import { runForCommand } from './run-for-command.ts';

const NOT_HERE = { code: 'supervisor/not-here' };
const never = new AbortController().signal;
let home: string;
let context: Context;
let runtime: MemoryRuntime;
let host: Host;
let greet: () => Promise<object>;
let told: StartEvent[];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-run-for-'));
  runtime = new MemoryRuntime();
  greet = async () => ({ name: 'fake', version: '1' });
  told = [];
  const self = { pid: process.pid, started: 'me' };
  const shared = {
    places: places({ env: {}, home, platform: 'linux', temp: home }),
    clock: systemClock,
    random: (min: number) => min,
    fetch,
    self,
    isAlive: () => true,
    lacksGroups: () => false,
  };
  context = {
    ...shared,
    env: { HOME: home, PATH: '/bin', SKEP_DETACHED: '1', SKEP_READY_FD: '3' },
    home,
    cwd: '/',
    platform: 'linux',
    uid: process.getuid?.(),
    program: { node: '/bin/false', entry: 'x', version: '1.0.0' },
    // Nobody reads what the supervisor writes.
    terminal: { out() {}, err() {}, interactive: false, liveErr: false, liveOut: false, colorOut: false, colorErr: false, width: 80, widthOut: Infinity }, // prettier-ignore
    signal: never,
    end() {},
    onFault: () => () => {},
    exit() {},
  };
  host = new Host({
    ...shared,
    openRuntime: async () => runtime,
    connectRuntime: async () => runtime,
    startProxy: async ({ port }) => ({
      url: 'http://127.0.0.1/mcp',
      port,
      greet: async () => ({ serverInfo: await greet() }),
      behind: () => () => {},
      backendEnded() {},
      backendStarted() {},
      close: async () => {},
    }),
    version: '1',
    home: '/home/me',
    owner: 'me',
    terminate() {},
    log: silentLog,
    secretsOf: async () => ({}),
    forgetSecrets: async () => {},
    signIns: async () => memoryStore(),
    openWorkloadLog: async () => ({ log: silentLog, close() {} }),
  });
});
afterEach(async () => {
  await host.release();
  await rm(home, { recursive: true });
});

interface Asked {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly signal?: AbortSignal;
}

async function run(argv: readonly string[], { env = {}, cwd = '/', signal = never }: Asked = {}) {
  const request: RunOperation = {
    op: 'run',
    argv: [...argv],
    env: { HOME: home, PATH: '/bin', ...env },
    cwd,
  };
  const tell = (event: StartEvent): void => void told.push(event);
  return runForCommand(request, { tell, signal }, { context, host, connectRuntime: async () => runtime });
}

/** Names of what is saved, and of what runs. */
async function left(): Promise<readonly (readonly string[])[]> {
  const saved = await readdir(context.places.runConfigsDir).catch(() => []);
  return [saved, (await runtime.list()).map(({ name }) => name)];
}

test('a run whose image is there is planned, saved and started, and the one who asked hears when it is saved', async () => {
  await expect(
    run(['fake:1', '--name', 'a1', '-e', 'TOKEN', '--', 'one'], {
      env: { TOKEN: 'of the caller' },
      cwd: home,
    }),
  ).resolves.toMatchObject({ port: 10_000, readiness: { is: 'answered', server: 'fake 1' } });
  const saved = await loadRunConfig(context.places, 'a1');
  expect(saved).toMatchObject({ env_vars: { TOKEN: 'of the caller' }, cmd_args: ['one'] });
  expect(await left()).toEqual([['a1.json'], ['a1']]);
  const url = `http://127.0.0.1:${saved.port}/mcp`;
  expect(told).toContainEqual({ kind: 'saved', name: 'a1', url });
  const kinds = told.map(({ kind }) => kind);
  expect(kinds.slice(0, kinds.indexOf('saved')).filter((kind) => kind !== 'told')).toEqual(['card']);
});

test.each<[string, readonly string[], Asked]>([
  ['an image that has to be pulled', ['other:1'], {}],
  ['--foreground', ['fake:1', '--foreground'], {}],
  ['--debug', ['fake:1', '--debug'], {}],
  ['SKEP_DEBUG', ['fake:1'], { env: { SKEP_DEBUG: '1' } }],
  ['--help', ['--help'], {}],
  ['a file of variables', ['fake:1', '--env-file', '/dev/zero'], {}],
  ['a profile in a file', ['fake:1', '--permission-profile', '/dev/zero'], {}],
  ['a profile in a file beside it', ['fake:1', '--permission-profile', 'strict'], {}],
  ['a certificate in a file', ['fake:1', '--ca-cert', '/dev/zero'], {}],
  ['an exported configuration', ['--from-config', '/dev/zero'], {}],
  ['a folder, which may be one of a machine that does not answer', ['fake:1', '-v', '/:/x:ro'], {}],
  ['a host that has to be looked up', ['fake:1', '--host', 'one.invalid'], {}],
  ['another runtime', ['fake:1', '--runtime', 'sandbox'], {}],
  ['another PATH', ['fake:1'], { env: { PATH: '/usr/bin' } }],
  ['another engine', ['fake:1'], { env: { DOCKER_HOST: 'tcp://127.0.0.1:1' } }],
])('%s is left to the command, and nothing is made', async (_, argv, asked) => {
  await expect(run([...argv, '--name', 'a1'], asked)).rejects.toMatchObject(NOT_HERE);
  expect(await left()).toEqual([[], []]);
  expect(told.map(({ kind }) => kind)).not.toContain('saved');
});

test.each([
  ['registry_url', 'https://127.0.0.1/catalogue.json'],
  ['registry_api_url', 'https://127.0.0.1/api'],
  ['local_registry_path', '/dev/zero'],
])("a name is not looked up in somebody else's catalogue (%s), a package needs none", async (key, value) => {
  await mkdir(dirname(context.places.configFile), { recursive: true });
  await writeFile(context.places.configFile, `${key}: ${value}\n`);
  await expect(run(['fake:1', '--name', 'a1'])).rejects.toMatchObject(NOT_HERE);
  expect(await left()).toEqual([[], []]);
});

test.each(['UV_DEFAULT_INDEX', 'PIP_INDEX_URL'])(
  'a package that %s takes from elsewhere is never the one of that name that was built from the usual index',
  async (variable) => {
    runtime = new MemoryRuntime({ fake: idle });
    const argv = ['uvx://fake@1.0.0', '--name'];
    await run([...argv, 'a1']);
    const env = { [variable]: 'https://127.0.0.1/simple' };
    await expect(run([...argv, 'a2'], { env })).rejects.toMatchObject(NOT_HERE);
    expect(await left()).toEqual([['a1.json'], ['a1']]);
  },
);

test('what a package is made from is looked for with the variables of the command', async () => {
  runtime = new MemoryRuntime({ fake: idle });
  const env = { npm_config_registry: 'https://mirror.example/npm/', NPM_CONFIG_USERCONFIG: './ci.npmrc' };
  await run(['npx://fake@1.0.0', '--name', 'a1'], { env: { ...env, PIP_CONFIG_FILE: '' }, cwd: home });
  expect(runtime.prepared[0]?.env).toMatchObject({
    npm_config_registry: env.npm_config_registry,
    // The directory of the supervisor is another one.
    NPM_CONFIG_USERCONFIG: join(home, 'ci.npmrc'),
    PIP_CONFIG_FILE: '',
    HOME: home,
  });
});

test('a question is left to the command, which can ask it', async () => {
  // Of the built-in catalogue, with a required variable.
  await expect(run(['tavily-mcp', '--name', 'a1'])).rejects.toMatchObject(NOT_HERE);
  expect(await left()).toEqual([[], []]);
});

test('what is wrong is said as by the command, and what was told before it reaches the caller', async () => {
  await expect(run(['fake:1', '--name', '-'])).rejects.toMatchObject({ code: 'run/invalid-name' });
  await run(['fake:1', '--name', 'a1']);
  await expect(run(['fake:1', '--name', 'a1'])).rejects.toMatchObject({ code: 'run/name-taken' });
});

test('a server that crashes is left for the command to remove, with its last lines told', async () => {
  runtime.crash = { exitCode: 3, says: 'no token' };
  greet = () => new Promise(() => {});
  await expect(run(['fake:1', '--name', 'a1'])).rejects.toMatchObject({ code: 'run/crashed-at-start' });
  expect(told).toContainEqual({ kind: 'output', line: 'no token' });
  expect(await readStatus(context.places, 'a1')).toMatchObject({ status: 'error' });
});

test('when the command goes away while the server starts, nothing of it is left', async () => {
  const gone = new AbortController();
  greet = async () => {
    gone.abort(new Error('gone'));
    return new Promise(() => {});
  };
  await expect(run(['fake:1', '--name', 'a1'], { signal: gone.signal })).rejects.toThrow('gone');
  expect(await left()).toEqual([[], []]);
});

test('when the supervisor ends while the server starts, what was saved stays for the next one to start', async () => {
  const gone = new AbortController();
  greet = async () => {
    gone.abort(new SkepError('supervisor/unreachable'));
    return new Promise(() => {});
  };
  await expect(run(['fake:1', '--name', 'a1'], { signal: gone.signal })).rejects.toMatchObject({
    code: 'supervisor/unreachable',
  });
  expect(await left()).toEqual([['a1.json'], []]);
});

test('when the supervisor ends before that, the command hears so and nothing is left', async () => {
  const signal = AbortSignal.abort(new SkepError('supervisor/unreachable'));
  await expect(run(['fake:1', '--name', 'a1'], { signal })).rejects.toMatchObject({
    code: 'supervisor/unreachable',
  });
  expect(await left()).toEqual([[], []]);
});

test('two commands at once do not get one name', async () => {
  const both = await Promise.allSettled([
    run(['fake:1', '--name', 'a1']),
    run(['fake:1', '--name', 'a1']),
    run(['fake:1', '--name', 'a2']),
  ]);
  const outcomes = both.map((one) => (one.status === 'fulfilled' ? 'runs' : String(one.reason.code)));
  expect(outcomes.toSorted()).toEqual(['run/name-taken', 'runs', 'runs']);
});
