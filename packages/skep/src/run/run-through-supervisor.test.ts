import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { places } from '@skep/core/files/places.ts';
import { silentLog, type Log } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Context } from '../cli/context.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { Host } from '../supervisor/host.ts';
import { MAX_LINE_CHARS, type Endpoint } from '../supervisor/protocol.ts';
import { testServer } from '../supervisor/server.fixture.ts';
import { ownerOf } from '../supervisor/owner.ts';
import type { RunOperation, RunWays } from '../supervisor/server.ts';
import { saveRunConfig } from '../run-config/file.ts';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { scriptedEngine } from '../runtime/docker/engine.fixture.ts';
import { isBeingMade } from '../workloads/name-lock.ts';
import { runThroughSupervisor } from './run-through-supervisor.ts';

type Run = (request: RunOperation, ways: RunWays) => Promise<Endpoint>;

const WARNING = 'Warning: where it comes from is not verified\n';
const URL = 'http://127.0.0.1:4001/mcp';
const ready: Endpoint = { url: URL, port: 4001, readiness: { is: 'answered', server: 'fake 1' } };
const self = { pid: process.pid, started: 'me' };
let home: string;
let printed: string;
let removed: string[];
let heldAtRemoval: boolean;
let lacksGroups: boolean;
let logged: object[];
let ending: AbortController;
let served: Promise<void>;
let interrupt: AbortController;
let context: Context;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-through-'));
  printed = '';
  removed = [];
  heldAtRemoval = false;
  lacksGroups = false;
  logged = [];
  ending = new AbortController();
  interrupt = new AbortController();
  served = Promise.resolve();
  const print = (text: string): void => void (printed += text);
  context = {
    places: places({ env: {}, home, platform: 'linux', temp: home }),
    env: { HOME: home, SECRET: 'of the caller', NOTHING: undefined },
    home,
    cwd: '/somewhere',
    platform: 'linux',
    uid: process.getuid?.(),
    self,
    program: { node: '/bin/false', entry: 'x', version: '1.0.0' },
    terminal: { out: (text) => print(`out: ${text}`), err: (text) => print(`err: ${text}`), interactive: false, liveErr: false, liveOut: false, colorOut: false, colorErr: false, width: 80, widthOut: Infinity }, // prettier-ignore
    clock: systemClock,
    random: (min) => min,
    fetch,
    signal: interrupt.signal,
    isAlive: () => true,
    lacksGroups: () => lacksGroups,
    end() {},
    onFault: () => () => {},
    exit() {},
  };
});
afterEach(async () => {
  ending.abort();
  await served;
  await rm(home, { recursive: true });
});

/** A supervisor whose runs go as the test says. */
async function supervisor(run: Run, version = '1.0.0'): Promise<void> {
  const { places: where } = context;
  await mkdir(where.stateDir, { recursive: true });
  await mkdir(where.dataDir, { recursive: true });
  const log: Log = { ...silentLog, warn: (fields) => void logged.push(fields) };
  const host = {
    busyWith: [],
    async remove(name: string) {
      removed.push(name);
      heldAtRemoval = await isBeingMade(name, where);
    },
    start: async () => ready,
  } as unknown as Host;
  const up = await testServer({ places: where, host, run, log, signal: ending.signal, greets: { version } });
  served = up.over;
}

const argv = ['x', '--name', 'a1'];
const run = (): ReturnType<typeof runThroughSupervisor> => runThroughSupervisor(argv, context);

test('the supervisor gets what the command knows, and the person sees what the command would have shown', async () => {
  let asked: RunOperation | undefined;
  await supervisor(async (request, { tell }) => {
    asked = request;
    tell({ kind: 'told', text: WARNING });
    tell({ kind: 'card', rows: [{ label: 'Reads', text: '/notes\u001B[2J', tone: 'plain' }] });
    tell({ kind: 'saved', name: 'a1', url: URL });
    tell({ kind: 'step', title: 'Starting a1' });
    return ready;
  });
  expect(await run()).toBeUndefined();
  const env = { HOME: home, SECRET: 'of the caller' };
  expect(asked).toEqual({ op: 'run', argv, env, cwd: '/somewhere' });
  expect(printed).toBe(
    `err: ${WARNING}err: Starting a1\nout: ${URL}\nerr: a1 is running (fake 1)\n  Reads: /notes\u{FFFD}[2J\nConnect an MCP client to ${URL}.\n  skep logs a1   skep stop a1   skep rm a1\n`,
  );
});

test('what the supervisor does not do the command does, as if nobody had been asked', async () => {
  await supervisor(async (_, { tell }) => {
    tell({ kind: 'told', text: WARNING });
    throw new SkepError('supervisor/not-here');
  });
  expect((await run())?.host).toBe(context);
  expect(printed).toBe('');
});

test('a supervisor of another version is not asked', async () => {
  await supervisor(() => Promise.reject(new Error('asked')), '0.9.0');
  expect((await run())?.host).toBe(context);
});

test('a supervisor that is not in a group of this command may not reach its engine, and is not asked', async () => {
  await supervisor(() => Promise.reject(new Error('asked')));
  lacksGroups = true;
  expect((await run())?.host).toBe(context);
});

test('an environment that is too long for a request stays here', async () => {
  await supervisor(() => Promise.reject(new Error('asked')));
  context = { ...context, env: { LONG: 'x'.repeat(MAX_LINE_CHARS) } };
  expect((await run())?.host).toBe(context);
});

test('what is wrong with the run is the error of the command, after what it warned of', async () => {
  await supervisor(async (_, { tell }) => {
    tell({ kind: 'told', text: WARNING });
    throw new SkepError('run/name-taken', { message: 'taken', hint: 'choose another' });
  });
  await expect(run()).rejects.toMatchObject({
    code: 'run/name-taken',
    message: 'taken',
    hint: 'choose another',
  });
  expect(printed).toBe(`err: ${WARNING}`);
});

test('what was typed does not get into the log of the supervisor, where a secret would stay', async () => {
  await supervisor(() =>
    Promise.reject(new SkepError('usage/unexpected-argument', { message: 'unexpected argument "s3cret"' })),
  );
  await expect(run()).rejects.toMatchObject({ message: 'unexpected argument "s3cret"' });
  expect(logged).toEqual([{ op: 'run', code: 'usage/unexpected-argument' }]);
});

test('a start that fails after it was saved is removed', async () => {
  await supervisor(async (_, { tell }) => {
    tell({ kind: 'saved', name: 'a1', url: URL });
    tell({ kind: 'output', line: 'no token' });
    throw new SkepError('run/crashed-at-start');
  });
  await expect(run()).rejects.toMatchObject({ code: 'run/crashed-at-start' });
  expect(removed).toEqual(['a1']);
  expect(heldAtRemoval).toBe(true);
  expect(printed).toBe('err:   no token\n');
});

describe('what another command has made of that name since', () => {
  const other = decodeRunConfig({ name: 'a1', image: 'x', transport: 'stdio', port: 4002 }, 'test');

  test('is not removed with a start that failed', async () => {
    await supervisor(async (_, { tell }) => {
      tell({ kind: 'saved', name: 'a1', url: URL });
      await saveRunConfig(context.places, other);
      throw new SkepError('run/crashed-at-start');
    });
    await expect(run()).rejects.toMatchObject({ code: 'run/crashed-at-start' });
    expect(removed).toEqual([]);
  });

  test('is not started for one whose supervisor has died', async () => {
    await supervisor(async (_, { tell }) => {
      tell({ kind: 'saved', name: 'a1', url: URL });
      await saveRunConfig(context.places, other);
      ending.abort();
      return new Promise(() => {});
    });
    await expect(run()).rejects.toMatchObject({
      code: 'run/name-taken',
      message: expect.stringContaining('another command has the name'),
    });
    expect(printed).toBe('');
  });
});

test('an interruption reaches the supervisor, which ends what it had begun', async () => {
  const gone = Promise.withResolvers<void>();
  await supervisor(async (_, { signal }) => {
    signal.addEventListener('abort', () => gone.resolve());
    interrupt.abort(new SkepError('run/cancelled'));
    await gone.promise;
    throw new SkepError('run/cancelled');
  });
  await expect(run()).rejects.toMatchObject({ code: 'run/cancelled' });
  await gone.promise;
});

test('a supervisor that ends in the middle of a run does not take its command for one that has gone', async () => {
  const why = Promise.withResolvers<unknown>();
  await supervisor(async (_, { tell, signal }) => {
    tell({ kind: 'saved', name: 'a1', url: URL });
    signal.addEventListener('abort', () => why.resolve(signal.reason));
    ending.abort();
    return new Promise(() => {});
  });
  // It wants to start what was saved again, of which nothing is there in this test.
  await expect(run()).rejects.toMatchObject({ code: 'workload/not-found' });
  expect(await why.promise).toMatchObject({ code: 'supervisor/unreachable' });
});

test('without a supervisor the command goes on', async () => {
  await mkdir(context.places.stateDir, { recursive: true });
  expect(await run()).toMatchObject({ host: { cwd: '/somewhere' } });
  expect(printed).toBe('');
});

describe('an engine, while the command that starts a supervisor is loaded,', () => {
  beforeEach(async () => {
    await mkdir(context.places.stateDir, { recursive: true });
    await mkdir(context.places.dataDir, { recursive: true });
  });

  test('is asked for a network, which goes with the command where that does not use it', async () => {
    const made = Promise.withResolvers<unknown>();
    const engine = await scriptedEngine({
      'POST /networks/create'({ body }) {
        made.resolve(body);
        return { status: 201, body: { Id: 'n1' } };
      },
      'DELETE /networks/n1': { status: 204 },
    });
    context = { ...context, env: { ...context.env, SKEP_DOCKER_SOCKET: engine.socket } };
    const left = await run();
    expect(await made.promise).toMatchObject({
      Name: expect.stringMatching(/^skep-spare-[0-9a-f]{12}$/),
      Labels: { 'skep.state': ownerOf(context.places.stateDir), 'skep.maker': `${process.pid} me` },
    });
    expect(engine.calls()).not.toContain('DELETE /networks/n1');
    await left?.[Symbol.asyncDispose]();
    expect(engine.calls()).toContain('DELETE /networks/n1');
    // Nor does anything else wait for it.
    expect(await run()).toMatchObject({ host: { woken: expect.anything() } });
  });

  test.each([
    ['the command line says that no network will do', '--network', ''],
    ['another runtime was named', '--name', 'sandbox'],
  ])('is not asked where %s', async (_, flag, SKEP_RUNTIME) => {
    const engine = await scriptedEngine({});
    context = { ...context, env: { ...context.env, SKEP_DOCKER_SOCKET: engine.socket, SKEP_RUNTIME } };
    const left = await runThroughSupervisor(['x', flag, 'none'], context);
    expect(left?.host.woken).toBeDefined();
    await left?.[Symbol.asyncDispose]();
    expect(engine.calls()).toEqual([]);
  });

  // It would be given up after five seconds else.
  test('keeps nobody waiting where it is silent', { timeout: 4_000 }, async () => {
    const socket = join(home, 'silent.sock');
    const closed = Promise.withResolvers<void>();
    const server = createServer(
      (connection) => void connection.resume().once('close', () => closed.resolve()),
    );
    await new Promise<void>((resolve) => void server.listen(socket, resolve));
    context = { ...context, env: { ...context.env, SKEP_DOCKER_SOCKET: socket } };
    const left = await run();
    await left?.[Symbol.asyncDispose]();
    // Nor does an open connection keep the command from ending.
    await closed.promise;
    await new Promise((resolve) => void server.close(resolve));
  });

  test('keeps nobody waiting where there is none, or it fails', async () => {
    const { socket } = await scriptedEngine({ 'POST /networks/create': { status: 500 } });
    for (const at of [socket, join(home, 'none.sock')]) {
      context = { ...context, env: { ...context.env, SKEP_DOCKER_SOCKET: at } };
      const left = await run();
      expect(left?.host.woken).toBeDefined();
      await left?.[Symbol.asyncDispose]();
    }
    expect(printed).toBe('');
  });
});
