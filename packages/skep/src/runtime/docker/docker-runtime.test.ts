import { describe, expect, test } from 'vitest';
import type { WorkloadSpec } from '../runtime.ts';
import { scriptedEngine } from './engine.fixture.ts';

const signal = new AbortController().signal;
const SPEC: WorkloadSpec = {
  name: 'a1',
  reference: 'image:1',
  args: [],
  env: {},
  labels: {},
  stdio: true,
  mounts: [],
  network: 'none',
  ports: [],
  privileged: false,
};
const SHARED: WorkloadSpec = { ...SPEC, network: 'bridge' };

const network = (Id: string, more: object = {}): object => ({
  Id,
  Name: 'skep-external',
  Created: '2026-01-01T00:00:00Z',
  Labels: { 'skep.managed': 'true' },
  ...more,
});
const container = (more: object = {}, state: object = {}): object => ({
  Name: '/a1',
  Image: 'sha256:one',
  Created: '2026-01-01T00:00:00Z',
  State: { Status: 'running', Running: true, ExitCode: 0, StartedAt: '2026-01-01T00:00:01Z', ...state },
  Config: { Image: 'image:1', Labels: { team: 'core' } },
  NetworkSettings: { Networks: { 'skep-external': {} } },
  ...more,
});
const EXITED = { Status: 'exited', Running: false, ExitCode: 3 };
const refusal = (message: string): object => ({ message });
const image = (Id: string): object => ({ Id, Config: {} });

describe('who an engine is', () => {
  test.each([
    [
      { ID: 'abc', Name: 'host', ServerVersion: '27.1' },
      { id: 'abc', version: '27.1' },
    ],
    // Podman has no id of its own.
    [
      { ID: '', Name: 'host', ServerVersion: '5.0' },
      { id: 'host', version: '5.0' },
    ],
  ])('is told by %j', async (body, info) => {
    const { runtime } = await scriptedEngine({ 'GET /info': { body } });
    expect(await runtime.probe(signal)).toMatchObject({ kind: 'docker', ...info });
  });

  test('is its address where it has neither id nor name', async () => {
    const { runtime } = await scriptedEngine({ 'GET /info': { body: { ServerVersion: '1' } } });
    const { id, endpoint } = await runtime.probe(signal);
    expect(id).toBe(endpoint);
  });

  test('is an error where it does not say', async () => {
    const { runtime } = await scriptedEngine({
      'GET /info': { status: 500, body: refusal('out of memory') },
    });
    await expect(runtime.probe(signal)).rejects.toMatchObject({
      code: 'runtime/engine-refused',
      message: 'the container engine refused to describe itself: out of memory',
    });
  });
});

describe('to create a workload', () => {
  test('without the shared network asks for nothing else', async () => {
    const engine = await scriptedEngine({ 'POST /containers/create': { status: 201 } });
    await engine.runtime.create(SPEC);
    expect(engine.calls()).toEqual(['POST /containers/create']);
    expect(engine.asked[0]).toMatchObject({ query: { name: 'a1' }, body: { Image: 'image:1' } });
  });

  test('makes the shared network where there is none, and names it by its id', async () => {
    const engine = await scriptedEngine({
      'GET /networks': [{ body: [] }, { body: [network('n1')] }],
      'POST /networks/create': { status: 201, body: { Id: 'n1' } },
      'POST /containers/create': { status: 201 },
    });
    await engine.runtime.create(SHARED);
    expect(engine.calls()).toEqual([
      'GET /networks',
      'POST /networks/create',
      'GET /networks',
      'POST /containers/create',
    ]);
    expect(engine.asked.at(-1)?.body).toMatchObject({ HostConfig: { NetworkMode: 'n1' } });
  });

  test('of several networks made at once keeps the oldest, and removes what nobody uses', async () => {
    const older = network('n2', { Created: '2025-12-31T00:00:00Z' });
    const engine = await scriptedEngine({
      'GET /networks': [
        { body: [] },
        { body: [network('n1'), older, network('n3', { Name: 'skep-external-2' })] },
      ],
      'POST /networks/create': { status: 201 },
      'GET /containers/json': { body: [] },
      'DELETE /networks/n1': { status: 204 },
      'POST /containers/create': { status: 201 },
    });
    await engine.runtime.create(SHARED);
    expect(engine.calls()).toContain('DELETE /networks/n1');
    expect(engine.calls().filter((call) => call.startsWith('DELETE'))).toHaveLength(1);
    expect(engine.asked.at(-1)?.body).toMatchObject({ HostConfig: { NetworkMode: 'n2' } });
  });

  test('tries again when the network went away in between, and not for ever', async () => {
    const gone = { status: 404, body: refusal('network n1 not found') };
    const script = {
      'GET /networks': { body: [network('n1')] },
      'GET /containers/json': { body: [{ Id: 'other' }] },
    };
    const once = await scriptedEngine({ ...script, 'POST /containers/create': [gone, { status: 201 }] });
    await once.runtime.create(SHARED);
    const always = await scriptedEngine({ ...script, 'POST /containers/create': gone });
    await expect(always.runtime.create(SHARED)).rejects.toMatchObject({ code: 'runtime/engine-refused' });
    expect(always.calls().filter((call) => call === 'POST /containers/create')).toHaveLength(3);
  });

  test('that fails takes the network with it that was made for it, and leaves one that others use', async () => {
    const script = {
      'GET /networks': { body: [network('n1')] },
      'POST /containers/create': { status: 500, body: refusal('disk full') },
      'DELETE /networks/n1': { status: 204 },
    };
    const alone = await scriptedEngine({ ...script, 'GET /containers/json': { body: [] } });
    await expect(alone.runtime.create(SHARED)).rejects.toThrow('disk full');
    expect(alone.calls()).toContain('DELETE /networks/n1');
    const shared = await scriptedEngine({ ...script, 'GET /containers/json': { body: [{ Id: 'other' }] } });
    await expect(shared.runtime.create(SHARED)).rejects.toThrow('disk full');
    expect(shared.calls()).not.toContain('DELETE /networks/n1');
  });

  test.each([
    [409, 'Conflict', 'runtime/name-taken', 'a container named "a1" exists already'],
    [404, 'No such image: image:1', 'runtime/image-not-found', 'image "image:1" is not on the engine'],
    [
      400,
      'invalid mount config',
      'runtime/engine-refused',
      'the container engine refused to create container "a1": invalid mount config',
    ],
  ])('that the engine answers with %d is told as what it is', async (status, text, code, message) => {
    const engine = await scriptedEngine({ 'POST /containers/create': { status, body: refusal(text) } });
    await expect(engine.runtime.create(SPEC)).rejects.toMatchObject({ code, message });
  });

  test.each(['', '../a', 'a b', '-a'])('asks no engine for the name "%s"', async (name) => {
    const engine = await scriptedEngine({});
    await expect(engine.runtime.create({ ...SPEC, name })).rejects.toThrow();
    expect(engine.asked).toEqual([]);
  });

  test('anew tells whether files of the server are lost', async () => {
    const script = {
      'DELETE /containers/a1': { status: 204 },
      'GET /networks': { body: [] },
      'POST /containers/create': { status: 201 },
    };
    const changed = (Path: string, Kind = 1): object => ({ body: [{ Path, Kind }] });
    for (const [changes, kept] of [
      [changed('/data/notes.db'), false],
      [changed('/tmp/cache'), true],
      [changed('/etc/hosts'), true],
      [changed('/data', 0), true],
      [{ body: null }, true],
      [{ status: 404 }, true],
    ] as const) {
      const engine = await scriptedEngine({ ...script, 'GET /containers/a1/changes': changes });
      expect(await engine.runtime.replace(SPEC)).toBe(kept);
    }
  });
});

describe('to start a workload', () => {
  test('that runs already is fine', async () => {
    const { runtime } = await scriptedEngine({ 'POST /containers/a1/start': { status: 304 } });
    await runtime.start('a1');
  });

  test('whose network was pruned gives it another one', async () => {
    const engine = await scriptedEngine({
      'POST /containers/a1/start': [{ status: 404, body: refusal('network n0 not found') }, { status: 204 }],
      'GET /containers/a1/json': { body: container() },
      'GET /networks': { body: [network('n1')] },
      'POST /networks/skep-external/disconnect': {},
      'POST /networks/n1/connect': {},
    });
    await engine.runtime.start('a1');
    expect(engine.calls()).toContain('POST /networks/n1/connect');
  });

  test('whose new network goes away too gives it one more, and not for ever', async () => {
    const gone = { status: 404, body: refusal('network n1 not found') };
    const script = {
      'GET /containers/a1/json': { body: container() },
      'GET /networks': { body: [network('n1')] },
      'POST /networks/skep-external/disconnect': {},
    };
    const twice = await scriptedEngine({
      ...script,
      'POST /containers/a1/start': [gone, gone, { status: 204 }],
      'POST /networks/n1/connect': [gone, { status: 200 }],
    });
    await twice.runtime.start('a1');
    const always = await scriptedEngine({
      ...script,
      'POST /containers/a1/start': gone,
      'POST /networks/n1/connect': {},
    });
    await expect(always.runtime.start('a1')).rejects.toMatchObject({ code: 'runtime/start-failed' });
    expect(always.calls().filter((call) => call === 'POST /containers/a1/start')).toHaveLength(3);
  });

  test('on a network of somebody else that is gone only says so', async () => {
    const engine = await scriptedEngine({
      'POST /containers/a1/start': { status: 404, body: refusal('network mine not found') },
      'GET /containers/a1/json': { body: container({ NetworkSettings: { Networks: { mine: {} } } }) },
    });
    await expect(engine.runtime.start('a1')).rejects.toMatchObject({ code: 'runtime/start-failed' });
    expect(engine.calls()).not.toContain('GET /networks');
  });

  test.each([
    [404, 'No such container: a1', 'runtime/no-such-workload'],
    [400, 'exec: "nope": executable file not found', 'runtime/start-failed'],
    [500, 'address already in use', 'runtime/start-failed'],
  ])('that fails with %d %s', async (status, text, code) => {
    const { runtime } = await scriptedEngine({
      'POST /containers/a1/start': { status, body: refusal(text) },
    });
    await expect(runtime.start('a1')).rejects.toMatchObject({ code });
  });
});

describe('to stop and remove', () => {
  test.each([
    [0, '0'],
    [1, '1'],
    [1_500, '2'],
    [-5, '0'],
  ])('grants %d ms in whole seconds', async (graceMs, t) => {
    const engine = await scriptedEngine({ 'POST /containers/a1/stop': { status: 204 } });
    await engine.runtime.stop('a1', graceMs);
    expect(engine.asked[0]?.query).toEqual({ t });
  });

  test.each([304, 404])('is fine where there is nothing to stop (%d)', async (status) => {
    const { runtime } = await scriptedEngine({ 'POST /containers/a1/stop': { status } });
    await runtime.stop('a1', 0);
  });

  test('waits for a removal that another caller has begun', async () => {
    const engine = await scriptedEngine({
      'DELETE /containers/a1': { status: 409 },
      'POST /containers/a1/wait': {},
      'GET /networks': { body: [] },
    });
    await engine.runtime.remove('a1');
    expect(engine.calls()).toEqual([
      'GET /containers/a1/json',
      'DELETE /containers/a1',
      'POST /containers/a1/wait',
      'GET /networks',
    ]);
  });

  test('removes the shared network with its last workload, and never a network of somebody else', async () => {
    const engine = await scriptedEngine({
      'DELETE /containers/a1': { status: 204 },
      'GET /networks': { body: [network('n1'), network('n2', { Labels: null })] },
      'GET /containers/json': { body: [] },
      'DELETE /networks/n1': { status: 403, body: refusal('has active endpoints') },
    });
    await engine.runtime.remove('a1');
    expect(engine.calls()).not.toContain('DELETE /networks/n2');
  });

  test.each([
    ['stop', 'POST /containers/a1/stop', 'refused to stop "a1": no'],
    ['remove', 'DELETE /containers/a1', 'refused to remove "a1": no'],
  ] as const)('%s tells what the engine said', async (act, call, message) => {
    const { runtime } = await scriptedEngine({ [call]: { status: 500, body: refusal('no') } });
    await expect(act === 'stop' ? runtime.stop('a1', 0) : runtime.remove('a1')).rejects.toThrow(message);
  });
});

describe('to look at workloads', () => {
  test('tells what runs, what has ended and what is not there', async () => {
    const { runtime } = await scriptedEngine({
      'GET /containers/a1/json': { body: container() },
      'GET /containers/a2/json': { body: container({ Name: '/a2' }, EXITED) },
    });
    expect(await runtime.inspect('a1')).toMatchObject({
      name: 'a1',
      state: 'running',
      labels: { team: 'core' },
    });
    expect(await runtime.inspect('a2')).toMatchObject({ name: 'a2', state: 'exited', exitCode: 3 });
    expect(await runtime.inspect('a3')).toBeUndefined();
  });

  test('lists ours alone, without those that go away meanwhile', async () => {
    const engine = await scriptedEngine({
      'GET /containers/json': { body: [{ Id: 'c1' }, { Id: 'c2' }] },
      'GET /containers/c1/json': { body: container() },
    });
    expect((await engine.runtime.list()).map(({ name }) => name)).toEqual(['a1']);
    expect(JSON.parse(engine.asked[0]?.query['filters'] ?? '')).toEqual({ label: ['skep.managed=true'] });
  });

  test('waits for the end of one that runs, and not for one that has ended', async () => {
    const { runtime } = await scriptedEngine({
      'GET /containers/a1/json': { body: container() },
      'POST /containers/a1/wait': { body: { StatusCode: 7 } },
      'GET /containers/a2/json': { body: container({}, EXITED) },
    });
    expect(await runtime.wait('a1', signal)).toBe(7);
    expect(await runtime.wait('a2', signal)).toBe(3);
    await expect(runtime.wait('a3', signal)).rejects.toMatchObject({ code: 'runtime/no-such-workload' });
  });

  test('waits for the next end of one that was never started', async () => {
    const engine = await scriptedEngine({
      'GET /containers/a1/json': { body: container({}, { Status: 'created', Running: false }) },
      'POST /containers/a1/wait': { body: { StatusCode: 0 } },
    });
    await engine.runtime.wait('a1', signal);
    expect(engine.asked.at(-1)?.query).toEqual({ condition: 'next-exit' });
  });

  test('attaches to nothing that has ended, where an engine would stay silent', async () => {
    const { runtime } = await scriptedEngine({ 'GET /containers/a1/json': { body: container({}, EXITED) } });
    await expect(runtime.attach('a1')).rejects.toMatchObject({ code: 'runtime/not-running' });
    await expect(runtime.attach('a2')).rejects.toMatchObject({ code: 'runtime/no-such-workload' });
  });

  test.each([
    ['sha256:one', true],
    ['one', true],
    ['sha256:two', false],
  ])('an image that is %s by now is current: %s', async (id, current) => {
    const { runtime } = await scriptedEngine({
      'GET /containers/a1/json': { body: container() },
      'GET /images/image:1/json': { body: image(id) },
    });
    expect(await runtime.isCurrent('a1')).toBe(current);
  });

  test('an image that is not there any more is no reason to make a workload anew', async () => {
    const { runtime } = await scriptedEngine({ 'GET /containers/a1/json': { body: container() } });
    expect(await runtime.isCurrent('a1')).toBe(true);
  });

  test('the logs of what is not there are an error, and the count is the engine’s', async () => {
    const engine = await scriptedEngine({});
    const read = engine.runtime.logs('a1', { follow: false, tail: 5, signal });
    await expect(Array.fromAsync(read)).rejects.toMatchObject({ code: 'runtime/no-such-workload' });
    expect(engine.asked[0]?.query).toMatchObject({ tail: '5', follow: '0' });
    expect(engine.asked[0]?.query).not.toHaveProperty('timestamps');
    expect(engine.asked[0]?.query).not.toHaveProperty('since');
  });

  test('the time before each line is the engine’s, and so is what is older', async () => {
    const engine = await scriptedEngine({});
    const request = { follow: false, timestamps: true, signal };
    for (const since of [1_700_000_000_123, -1]) {
      const read = engine.runtime.logs('a1', { ...request, since });
      await expect(Array.fromAsync(read)).rejects.toMatchObject({ code: 'runtime/no-such-workload' });
    }
    expect(engine.asked.map(({ query }) => query)).toMatchObject([
      { timestamps: '1', since: '1700000000.123' },
      { timestamps: '1', since: '0.000' },
    ]);
  });
});

test('Podman is given no log driver that it does not have', async () => {
  const engine = await scriptedEngine({ 'POST /containers/create': { status: 201 } }, { podman: true });
  await engine.runtime.create(SPEC);
  expect(engine.asked[0]?.body).not.toHaveProperty('HostConfig.LogConfig');
});

test('a user for the sandbox is told to have no effect', async () => {
  const { runtime } = await scriptedEngine({});
  const wanted = { name: 'a1', mounts: [] };
  expect(await runtime.cautions({ ...wanted, user: 'root' })).toEqual([
    '--sandbox-user has no effect on a container engine',
  ]);
  expect(await runtime.cautions(wanted)).toEqual([]);
});

test('a mount in which other users could find setuid programs is told', async () => {
  const { runtime } = await scriptedEngine({});
  const mounts = [{ source: '/usr', target: '/data', readOnly: false }];
  expect(await runtime.cautions({ name: 'a1', mounts })).toEqual([
    'it may leave setuid programs in "/usr", which other users of this machine could run as the user it is in its image; mount a directory that only you can enter',
  ]);
});

test('limits that the kernel of the engine cannot keep are told', async () => {
  const limits = { memory: 1e9, pids: 100, disk: 0, cpus: 0 };
  const cautionsOf = async (info: object): Promise<readonly string[]> => {
    const { runtime } = await scriptedEngine({ 'GET /info': { body: info } });
    return runtime.cautions({ name: 'a1', mounts: [], limits });
  };
  expect(await cautionsOf({ MemoryLimit: true, PidsLimit: true, CpuCfsQuota: false })).toEqual([]);
  expect(await cautionsOf({})).toEqual([]);
  expect(await cautionsOf({ MemoryLimit: false, PidsLimit: false })).toEqual([
    'its memory cannot be limited by this engine (control groups)',
    'its processes cannot be limited by this engine (control groups)',
  ]);
});
