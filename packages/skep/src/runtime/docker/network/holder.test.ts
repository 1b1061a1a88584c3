import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { STDIO_SPEC } from '../../doubles/stdio-spec.ts';
import type { WorkloadSpec } from '../../runtime.ts';
import { Spares } from '../../spares.ts';
import { isStuck } from '../../stuck.ts';
import { endpointText } from '../endpoint.ts';
import { scriptedEngine, type Asked, type Script, type Scripted } from '../engine.fixture.ts';

const SPEC: WorkloadSpec = { ...STDIO_SPEC, labels: { 'skep.state': 'owner' } };
const HOLDER = 'skep-holder-random';
const made = (Id: string): Scripted => ({ status: 201, body: { Id } });
const refusal = (message: string): Scripted => ({ status: 500, body: { message } });
const on = (...names: readonly string[]): Scripted => ({
  body: { Containers: Object.fromEntries(names.map((Name) => [Name === HOLDER ? 'h1' : Name, { Name }])) },
});
const NOT_RUNNING: Scripted = {
  status: 409,
  body: { message: 'cannot join network of a non running container: h1' },
};
const RUNS = { Status: 'running', Running: true, ExitCode: 0, StartedAt: '2026-01-01T00:00:01Z' };
const isHolder = ({ query }: Asked): boolean => query['name']?.startsWith('skep-holder-') === true;

interface Options {
  readonly architecture?: string;
  /** What its containers run on. */
  readonly runs?: string;
  /** Whether a holder is ready before the test. */
  readonly ready?: boolean;
}

/** An engine on which the next workload would join a holder. */
async function engineWith(
  script: Readonly<Record<string, Script>> = {},
  { architecture = 'x86_64', runs = 'runc', ready = true }: Options = {},
) {
  const spares = new Spares();
  const engine = await scriptedEngine(
    {
      'POST /networks/create': [made('n1'), made('n2'), made('n3')],
      'POST /containers/create': (asked) => made(isHolder(asked) ? 'h1' : 'c1'),
      'POST /containers/h1/start': { status: 204 },
      'GET /networks': { body: [] },
      'GET /networks/n2': on(HOLDER),
      'GET /info': {
        body: { ID: 'one', ServerVersion: '1', Architecture: architecture, DefaultRuntime: runs },
      },
      'POST /images/create': { body: { status: `sha256:${'0'.repeat(64)}` } },
      [`POST /images/sha256:${'0'.repeat(64)}/tag`]: { status: 201 },
      'DELETE /containers/h1': { status: 204 },
      'DELETE /networks/n2': { status: 204 },
      ...script,
    },
    { spares },
  );
  onTestFinished(() => spares.close());
  await engine.runtime.create(SPEC);
  const failed = vi.fn();
  await engine.runtime.makeSpare?.(failed);
  const spare = await spares.peek(endpointText({ kind: 'unix', path: engine.socket }));
  if (ready) await vi.waitFor(() => expect(spare?.holder).toBe('h1'));
  const before = engine.asked.length;
  const modes = (): readonly unknown[] =>
    engine.asked
      .slice(before)
      .filter((asked) => asked.what === 'POST /containers/create' && !isHolder(asked))
      .map(({ body }) => (body as { HostConfig: { NetworkMode: string } }).HostConfig.NetworkMode);
  const calls = (): readonly string[] => engine.calls();
  return { ...engine, failed, spares, modes, calls, since: () => calls().slice(before) };
}

test('is joined by the next workload, which names its network and connects with none', async () => {
  const { runtime, modes, since, asked } = await engineWith();
  await runtime.create({ ...SPEC, name: 'a2' });
  expect(since()).toEqual(['GET /networks/n2', 'POST /containers/create']);
  expect(modes()).toEqual(['container:h1']);
  expect(asked.at(-1)?.body).not.toHaveProperty('NetworkingConfig');
  expect(asked.at(-1)?.body).toHaveProperty(['Labels', 'skep.network'], 'skep-spare-random');
});

test('is made from an image that holds one program, which is there once', async () => {
  const { asked } = await engineWith();
  const image = asked.find(({ what }) => what === 'POST /images/create');
  expect(image?.query).toMatchObject({ fromSrc: '-' });
  expect(image?.body).toContain('\x7fELF');
  const again = await engineWith({
    'GET /images/localhost/skeplocal/holder:afd3adfcd1816e7a/json': { body: { Id: 'i', Config: {} } },
  });
  expect(again.calls()).not.toContain('POST /images/create');
});

test.each<Options>([
  { architecture: 'riscv64' },
  { architecture: '' },
  { runs: 'runsc' },
  { runs: 'kata-runtime' },
  { runs: '' },
])('is not made on an engine that has %j', async (options) => {
  const { runtime, modes, failed, calls } = await engineWith(
    { 'GET /networks/n2': on() },
    { ...options, ready: false },
  );
  await vi.waitFor(() => expect(calls()).toContain('GET /info'));
  await runtime.create({ ...SPEC, name: 'a2' });
  expect(modes()).toEqual(['n2']);
  expect(failed).not.toHaveBeenCalled();
});

test.each<[string, Record<string, Script>]>([
  ['no image', { 'POST /images/create': { body: { error: 'no space left' } } }],
  [
    'no container',
    { 'POST /containers/create': (asked) => (isHolder(asked) ? refusal('no space left') : made('c1')) },
  ],
  ['not started', { 'POST /containers/h1/start': refusal('no space left') }],
])('that cannot be made (%s) is told, and the network is used without', async (_, script) => {
  const { runtime, modes, failed, calls } = await engineWith(
    { 'GET /networks/n2': on(), ...script },
    { ready: false },
  );
  await vi.waitFor(() => expect(failed).toHaveBeenCalledOnce());
  expect(String(failed.mock.calls[0]?.[0])).toContain('no space left');
  const isMade = calls().includes('POST /containers/h1/start');
  expect(calls().filter((call) => call === 'DELETE /containers/h1')).toHaveLength(isMade ? 1 : 0);
  await runtime.create({ ...SPEC, name: 'a2' });
  expect(modes()).toEqual(['n2']);
});

test('that is still being made is not waited for, and goes', async () => {
  const { promise, resolve } = Promise.withResolvers<Scripted>();
  const { runtime, modes, calls } = await engineWith(
    { 'POST /containers/h1/start': () => promise },
    { ready: false },
  );
  await vi.waitFor(() => expect(calls()).toContain('POST /containers/h1/start'));
  await runtime.create({ ...SPEC, name: 'a2' });
  expect(modes()).toEqual(['n2']);
  expect(calls()).not.toContain('DELETE /containers/h1');
  resolve({ status: 204 });
  await vi.waitFor(() => expect(calls()).toContain('DELETE /containers/h1'));
});

test('that was ended is done without', async () => {
  const { runtime, modes, since } = await engineWith({ 'GET /networks/n2': on() });
  await runtime.create({ ...SPEC, name: 'a2' });
  expect(modes()).toEqual(['n2']);
  await vi.waitFor(() => expect(since()).toContain('DELETE /containers/h1'));
});

test('that has name servers which this machine does not ask any more is done without', async () => {
  const then = vi.spyOn(Date, 'now').mockReturnValue(0);
  onTestFinished(() => then.mockRestore());
  const { runtime, modes, since } = await engineWith({}, { ready: false });
  await vi.waitFor(() => expect(since()).toContain('POST /containers/h1/start'));
  // What was asked before is answered by then.
  await runtime.inspect('somebody');
  await runtime.create({ ...SPEC, name: 'a2' });
  expect(modes()).toEqual(['n2']);
});

test.each<[string, Scripted]>([
  ['is not alone', on(HOLDER, 'somebody')],
  ['lost its network', { status: 404 }],
])(
  'that %s is not joined: it goes with its network, and the workload has one of its own',
  async (_, seen) => {
    const { runtime, modes, since } = await engineWith({ 'GET /networks/n2': seen });
    await runtime.create({ ...SPEC, name: 'a2' });
    expect(modes()).toEqual(['n3']);
    expect(since()).toEqual(expect.arrayContaining(['DELETE /containers/h1', 'DELETE /networks/n2']));
  },
);

test('that is gone when the container is made is done without', async () => {
  const { runtime, modes } = await engineWith({
    'POST /containers/create': (asked) => {
      if (isHolder(asked)) return made('h1');
      const { HostConfig } = asked.body as { HostConfig: { NetworkMode: string } };
      return HostConfig.NetworkMode === 'container:h1'
        ? { status: 404, body: { message: 'No such container: h1' } }
        : made('c1');
    },
  });
  await runtime.create({ ...SPEC, name: 'a2' });
  expect(modes()).toEqual(['container:h1', 'n2']);
});

test('goes with its network where the container cannot be made', async () => {
  const { runtime, since } = await engineWith({
    'POST /containers/create': (asked) =>
      isHolder(asked) || asked.query['name'] === 'a1' ? made('h1') : refusal('out of memory'),
    'GET /containers/json': { body: [{ Id: 'h1' }] },
  });
  await expect(runtime.create({ ...SPEC, name: 'a2' })).rejects.toThrow('out of memory');
  expect(since().filter((call) => call.startsWith('DELETE'))).toEqual([
    'DELETE /containers/h1',
    'DELETE /networks/n2',
  ]);
});

test('is made no more once a workload has published a port, and is given up for one that does', async () => {
  const { runtime, spares, modes, calls, since } = await engineWith();
  const ports = [{ hostIp: '127.0.0.1', hostPort: 1234, containerPort: 80 }];
  await runtime.create({ ...SPEC, name: 'a2', ports });
  expect(modes()).toEqual(['n2']);
  await vi.waitFor(() => expect(since()).toContain('DELETE /containers/h1'));
  const holders = calls().filter((call) => call === 'POST /containers/h1/start').length;
  await runtime.makeSpare?.();
  await vi.waitFor(() => expect(since()).toContain('GET /info'));
  await spares.close();
  expect(calls().filter((call) => call === 'POST /containers/h1/start')).toHaveLength(holders);
});

const joined = (
  labels: object = { 'skep.network': 'skep-spare-random' },
  State: object = { Status: 'exited', Running: false, ExitCode: 0 },
): Scripted => ({
  body: {
    Name: '/a1',
    Created: '2026-01-01T00:00:00Z',
    State,
    Config: { Image: 'image:1', Labels: labels },
    HostConfig: { NetworkMode: 'container:h1' },
    NetworkSettings: { Networks: {} },
  },
});

test('of somebody else, which a container names that is none of ours, is neither stopped nor started', async () => {
  const engine = await scriptedEngine({
    'GET /containers/a1/json': joined({}),
    'POST /containers/a1/stop': { status: 204 },
    'POST /containers/a1/start': NOT_RUNNING,
  });
  await engine.runtime.stop('a1', 0);
  await expect(engine.runtime.start('a1')).rejects.toMatchObject({ code: 'runtime/start-failed' });
  expect(engine.calls().filter((call) => call.includes('h1'))).toEqual([]);
});

const state = (Running: boolean, StartedAt = '2100-01-01T00:00:00Z'): Scripted => ({
  body: { State: { Running, StartedAt }, NetworkSettings: { Networks: { 'skep-spare-random': {} } } },
});

test('that runs is not what a server failed for', async () => {
  const engine = await scriptedEngine({
    'GET /containers/a1/json': joined(),
    'GET /containers/h1/json': state(true),
    'POST /containers/a1/start': { status: 400, body: { message: 'exec: "nope": not found' } },
  });
  await expect(engine.runtime.start('a1')).rejects.toThrow('exec: "nope": not found');
  expect(engine.calls().filter((call) => call === 'POST /containers/a1/start')).toHaveLength(1);
});

test('that does not start is what the person hears of', async () => {
  const engine = await scriptedEngine({
    'GET /containers/a1/json': joined(),
    'GET /containers/h1/json': state(false),
    'POST /containers/h1/start': refusal('no space left on device'),
  });
  await expect(engine.runtime.start('a1')).rejects.toMatchObject({
    code: 'runtime/start-failed',
    message: 'workload "a1" could not be started: no space left on device',
  });
});

test('is started before its server, and by nobody else who starts that at the same time', async () => {
  const script = {
    'GET /containers/a1/json': joined(),
    'GET /containers/h1/json': [state(false), state(true)],
    'POST /containers/h1/start': { status: 204 },
    'POST /containers/a1/start': { status: 204 },
  };
  const engine = await scriptedEngine(script);
  await engine.runtime.start('a1');
  const starts = engine.calls().filter((call) => call.endsWith('/start'));
  expect(starts).toEqual(['POST /containers/h1/start', 'POST /containers/a1/start']);
  const other = await scriptedEngine({
    ...script,
    'GET /containers/h1/json': state(true),
    'POST /containers/a1/start': [NOT_RUNNING, { status: 204 }],
  });
  await other.runtime.start('a1');
  expect(other.calls()).not.toContain('POST /containers/h1/start');
});

test('is started anew with a server where this machine asks others for names by now', async () => {
  const engine = await scriptedEngine({
    'GET /containers/a1/json': joined(),
    'GET /containers/h1/json': state(true, '2001-01-01T00:00:00Z'),
    'POST /containers/h1/stop': { status: 204 },
    'POST /containers/h1/start': { status: 204 },
    'POST /containers/a1/start': { status: 204 },
  });
  await engine.runtime.start('a1');
  expect(engine.calls().filter((call) => call.startsWith('POST'))).toEqual([
    'POST /containers/h1/stop',
    'POST /containers/h1/start',
    'POST /containers/a1/start',
  ]);
});

test('that somebody has removed is said, and is not taken for one whose network is gone twice', async () => {
  const gone = (network: string): Scripted => ({
    status: 404,
    body: { message: `network ${network} not found` },
  });
  const script = {
    'GET /containers/a1/json': joined(),
    'GET /containers/h1/json': state(false),
    'POST /containers/h1/start': [gone('n9'), { status: 204 }],
    'POST /containers/a1/start': { status: 204 },
    'GET /networks': { body: [] },
    'POST /networks/create': made('n10'),
    'POST /networks/skep-a1/disconnect': {},
    'POST /networks/n10/connect': {},
  };
  // Its network was replaced once already: it is called as others of the workload are.
  const on = { 'skep-a1': { NetworkID: 'n9' } };
  const replaced = {
    State: { Running: false },
    NetworkSettings: { Networks: on },
    HostConfig: { NetworkMode: 'n2' },
  };
  const Config = { Labels: { 'skep.network': 'skep-spare-random', 'skep.state': 'owner' } };
  const engine = await scriptedEngine({
    ...script,
    'GET /containers/h1/json': { body: { ...replaced, Config } },
  });
  await engine.runtime.start('a1');
  expect(engine.calls()).toContain('POST /networks/n10/connect');
  const without = await scriptedEngine({ ...script, 'GET /containers/h1/json': { status: 404 } });
  const failed = await without.runtime.start('a1').catch((error: unknown) => error);
  expect(isStuck(failed)).toBe(true);
});

test('that is on no network any more is as good as gone', async () => {
  const engine = await scriptedEngine({
    'GET /containers/a1/json': joined(),
    'GET /containers/h1/json': { body: { State: { Running: false }, NetworkSettings: { Networks: {} } } },
  });
  const failed = await engine.runtime.start('a1').catch((error: unknown) => error);
  expect(failed).toMatchObject({ message: expect.stringContaining('was taken off that') });
  expect(isStuck(failed)).toBe(true);
});

test('is not started anew under a server that runs', async () => {
  const engine = await scriptedEngine({
    'GET /containers/a1/json': joined(undefined, RUNS),
    'POST /containers/a1/start': { status: 304 },
  });
  await engine.runtime.start('a1');
  expect(engine.calls().filter((call) => call.startsWith('POST'))).toEqual(['POST /containers/a1/start']);
});

describe('a server', () => {
  const waiting = async (holder: Scripted, ends: () => Promise<Scripted> = () => new Promise(() => {})) => {
    let end: (answer: Scripted) => void = () => {};
    const engine = await scriptedEngine({
      'GET /containers/a1/json': joined(undefined, RUNS),
      'GET /containers/h1/json': holder,
      'POST /containers/h1/wait': ends,
      'POST /containers/a1/wait': () => new Promise<Scripted>((resolve) => (end = resolve)),
      'POST /containers/a1/stop': () => {
        end({ body: { StatusCode: 137 } });
        return { status: 204 };
      },
    });
    onTestFinished(() => end({ body: { StatusCode: 0 } }));
    const leaving = new AbortController();
    const ended = engine.runtime.wait('a1', leaving.signal);
    return { ...engine, ended, leave: () => leaving.abort() };
  };
  const stops = (asked: readonly Asked[]): number =>
    asked.filter(({ what }) => what === 'POST /containers/a1/stop').length;

  test.each<[string, Scripted]>([
    ['does not run', state(false)],
    ['is gone', { status: 404 }],
    ['was started after it, and so holds another network', state(true, '2026-01-01T00:00:02Z')],
  ])('is ended whose holder %s', async (_, holder) => {
    const { ended, asked } = await waiting(holder);
    expect(await ended).toBe(137);
    expect(stops(asked)).toBe(1);
  });

  test('is ended when its holder ends', async () => {
    const { promise, resolve } = Promise.withResolvers<Scripted>();
    const { ended, asked } = await waiting(state(true, '2026-01-01T00:00:00Z'), () => promise);
    await vi.waitFor(() => expect(asked.map(({ what }) => what)).toContain('POST /containers/h1/wait'));
    expect(stops(asked)).toBe(0);
    resolve({ body: { StatusCode: 137 } });
    expect(await ended).toBe(137);
  });

  test('is left alone as long as its holder runs', async () => {
    const { ended, asked, leave } = await waiting(state(true, '2026-01-01T00:00:00Z'));
    await vi.waitFor(() => expect(asked.map(({ what }) => what)).toContain('POST /containers/h1/wait'));
    leave();
    await expect(ended).rejects.toMatchObject({ code: 'runtime/aborted' });
    expect(stops(asked)).toBe(0);
  });
});
