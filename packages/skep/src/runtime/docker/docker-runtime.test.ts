import { describe, expect, test, vi } from 'vitest';
import type { WorkloadSpec } from '../runtime.ts';
import { Spares } from '../spares.ts';
import { scriptedEngine, type Asked, type Script } from './engine.fixture.ts';
import { isStuck } from '../stuck.ts';

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
const BRIDGE: WorkloadSpec = { ...SPEC, network: 'bridge' };

const made = (Id: string): object => ({ status: 201, body: { Id } });
const container = (more: object = {}, state: object = {}): object => ({
  Name: '/a1',
  Image: 'sha256:one',
  Created: '2026-01-01T00:00:00Z',
  State: { Status: 'running', Running: true, ExitCode: 0, StartedAt: '2026-01-01T00:00:01Z', ...state },
  Config: { Image: 'image:1', Labels: { team: 'core', 'skep.network': 'skep-a1', 'skep.state': 'owner' } },
  HostConfig: { NetworkMode: 'n0' },
  NetworkSettings: { Networks: { 'skep-a1': { NetworkID: 'n0' } } },
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

  test('is the name of its machine for Podman, which draws an id for each answer', async () => {
    const body = { ID: 'drawn', Name: 'host', ServerVersion: '4.3.1' };
    const { runtime } = await scriptedEngine({ 'GET /info': { body } }, { podman: true });
    expect(await runtime.probe(signal)).toMatchObject({ id: 'host' });
  });

  test('is another one for each user of Podman on a machine', async () => {
    const body = { Name: 'host', ServerVersion: '4.3.1', DockerRootDir: '/home/me/.local/share/containers' };
    const { runtime } = await scriptedEngine({ 'GET /info': { body } }, { podman: true });
    expect(await runtime.probe(signal)).toMatchObject({ id: 'host:/home/me/.local/share/containers' });
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
  test('that names a network makes none', async () => {
    const engine = await scriptedEngine({ 'POST /containers/create': { status: 201 } });
    await engine.runtime.create(SPEC);
    expect(engine.calls()).toEqual(['POST /containers/create']);
    expect(engine.asked[0]).toMatchObject({ query: { name: 'a1' }, body: { Image: 'image:1' } });
  });

  test('makes a network for it, and names that by its id', async () => {
    const engine = await scriptedEngine({
      'POST /networks/create': made('n1'),
      'POST /containers/create': { status: 201 },
    });
    await engine.runtime.create({ ...BRIDGE, labels: { 'skep.state': 'somebody' } });
    expect(engine.calls()).toEqual(['POST /networks/create', 'GET /networks', 'POST /containers/create']);
    expect(engine.asked[0]?.body).toMatchObject({
      Name: 'skep-a1',
      Internal: false,
      EnableIPv6: false,
      IPAM: { Config: [{ Subnet: expect.stringMatching(/^[\d.]+\/29$/) }] },
      Options: { 'com.docker.network.bridge.enable_icc': 'false' },
      Labels: {
        'skep.managed': 'true',
        'skep.name': 'a1',
        'skep.state': 'somebody',
        'skep.network': 'outward',
      },
    });
    expect(engine.asked[2]?.body).toMatchObject({ HostConfig: { NetworkMode: 'n1' } });
  });

  describe('after another one', () => {
    const wanted = { ...BRIDGE, labels: { 'skep.state': 'owner' } };
    const ENGINE = {
      'POST /networks/create': [made('n1'), made('n2'), made('n3')],
      'POST /containers/create': { status: 201 },
      'GET /networks': { body: [] },
      'GET /networks/n2': { body: { Containers: {} } },
      'DELETE /networks/n2': { status: 204 },
    } as const;

    test('takes the network that was made ahead, which names no workload', async () => {
      const engine = await scriptedEngine(ENGINE, { spares: new Spares() });
      await engine.runtime.create(wanted);
      await engine.runtime.makeSpare?.();
      const made = engine.asked.findLast(({ what }) => what === 'POST /networks/create')?.body;
      expect(made).toMatchObject({
        Name: expect.stringMatching(/^skep-spare-/),
        Labels: { 'skep.managed': 'true', 'skep.state': 'owner', 'skep.network': 'outward' },
      });
      expect(made).not.toHaveProperty('Labels.skep.name');
      await vi.waitFor(() => expect(engine.calls()).toContain('GET /info'));
      const before = engine.asked.length;
      await engine.runtime.create({ ...wanted, name: 'a2' });
      expect(engine.calls().slice(before)).toEqual(['GET /networks/n2', 'POST /containers/create']);
      expect(engine.asked.at(-1)?.body).toMatchObject({
        HostConfig: { NetworkMode: 'n2' },
        Labels: { 'skep.network': expect.stringMatching(/^skep-spare-/) },
      });
      await engine.runtime.create({ ...wanted, name: 'a3' });
      expect(engine.asked.at(-1)?.body).toMatchObject({ HostConfig: { NetworkMode: 'n3' } });
    });

    test.each([
      ['that is gone', { status: 404 }],
      ['with which something was connected', { body: { Containers: { somebody: {} } } }],
    ])('makes one of its own in place of one %s', async (_, seen) => {
      const engine = await scriptedEngine({ ...ENGINE, 'GET /networks/n2': seen }, { spares: new Spares() });
      await engine.runtime.create(wanted);
      await engine.runtime.makeSpare?.();
      await engine.runtime.create({ ...wanted, name: 'a2' });
      expect(engine.asked.at(-1)?.body).toMatchObject({ HostConfig: { NetworkMode: 'n3' } });
    });

    test('has none made ahead for it by who made no network, outside the supervisor, and on Podman', async () => {
      const without = await scriptedEngine(ENGINE, { spares: new Spares() });
      await without.runtime.create(SPEC);
      const outside = await scriptedEngine(ENGINE);
      await outside.runtime.create(wanted);
      const podman = await scriptedEngine(ENGINE, { spares: new Spares(), podman: true });
      await podman.runtime.create(wanted);
      for (const engine of [without, outside, podman]) {
        const before = engine.asked.length;
        await engine.runtime.makeSpare?.();
        expect(engine.calls().slice(before)).toEqual([]);
      }
    });
  });

  describe('before anything else of it', () => {
    const wanted = { ...BRIDGE, labels: { 'skep.state': 'owner' } };
    const engine = (spares: Spares, podman = false, more: Record<string, Script> = {}) =>
      scriptedEngine(
        {
          'POST /networks/create': [made('n1'), made('n2')],
          'POST /containers/create': { status: 201 },
          'GET /networks': { body: [] },
          'GET /networks/n1': { body: { Containers: {} } },
          'DELETE /networks/n1': { status: 204 },
          ...more,
        },
        { spares, podman },
      );

    test('has its network made ahead, which names no workload', async () => {
      const { runtime, asked } = await engine(new Spares());
      await runtime.makeAhead?.();
      await runtime.create(wanted);
      const networks = asked.filter(({ what }) => what === 'POST /networks/create');
      expect(networks.map(({ body }) => body)).toEqual([
        expect.objectContaining({ Name: expect.stringMatching(/^skep-spare-/) }),
      ]);
      expect(asked.at(-1)?.body).toMatchObject({ HostConfig: { NetworkMode: 'n1' } });
    });

    /** Creates it while the engine, which has been asked for its network, makes that. */
    async function createMeanwhile(more: Record<string, Script>, asked: Asked[] = []) {
      const seen = await engine(new Spares(), false, more);
      const { promise: isAsked, resolve } = Promise.withResolvers<void>();
      const ahead = seen.runtime.makeAhead?.(undefined, resolve).catch(() => {});
      await isAsked;
      try {
        await seen.runtime.create(wanted);
      } finally {
        await ahead;
        asked.push(...seen.asked.filter(({ what }) => /^(?:POST|DELETE) /.test(what)));
      }
      return asked;
    }
    const modes = (asked: readonly Asked[]): readonly unknown[] =>
      asked
        .filter(({ what }) => what === 'POST /containers/create')
        .map(({ body }) => (body as { HostConfig: { NetworkMode: string } }).HostConfig.NetworkMode);

    test('has its container made while its network is, which is then called by its name', async () => {
      const { promise: isCreated, resolve } = Promise.withResolvers<void>();
      const asked = await createMeanwhile({
        'POST /networks/create': () => isCreated.then(() => made('n1')),
        'POST /containers/create': () => {
          resolve();
          return { status: 201 };
        },
      });
      expect(asked.map(({ what }) => what)).toEqual(['POST /networks/create', 'POST /containers/create']);
      expect(asked[1]?.body).toMatchObject({
        HostConfig: { NetworkMode: 'skep-spare-random' },
        NetworkingConfig: { EndpointsConfig: { 'skep-spare-random': {} } },
        Labels: { 'skep.network': 'skep-spare-random' },
      });
    });

    test('has its container made anew where that network could not be made', async () => {
      const asked = await createMeanwhile({
        'POST /networks/create': [{ status: 500, body: refusal('no') }, made('n2')],
        'DELETE /containers/a1': { status: 204 },
      });
      expect(modes(asked)).toEqual(['skep-spare-random', 'n2']);
      const at = (what: string): number => asked.findLastIndex((one) => one.what === what);
      expect(at('DELETE /containers/a1')).toBeGreaterThan(-1);
      expect(at('DELETE /containers/a1')).toBeLessThan(at('POST /containers/create'));
    });

    test('has its container made once its network is there where the engine wants that', async () => {
      const asked = await createMeanwhile({
        'POST /containers/create': [{ status: 404, body: refusal('network not found') }, { status: 201 }],
      });
      expect(modes(asked)).toEqual(['skep-spare-random', 'n1']);
      expect(asked.map(({ what }) => what)).not.toContain('DELETE /containers/a1');
    });

    test.each([204, 500])(
      'says why its network cannot be made, whether or not its container can be removed (%d)',
      async (status) => {
        const asked: Asked[] = [];
        const failing = createMeanwhile(
          {
            'POST /networks/create': { status: 500, body: refusal('no more bridges') },
            'POST /containers/create': { status: 201, body: { Id: 'c1' } },
            'DELETE /containers/c1': { status, body: refusal('busy') },
          },
          asked,
        );
        await expect(failing).rejects.toThrow('no more bridges');
        const calls = asked.map(({ what }) => what);
        expect(calls.filter((what) => what === 'POST /containers/create')).toHaveLength(1);
        expect(calls).toContain('DELETE /containers/c1');
      },
    );

    test('is not made again where the name is taken', async () => {
      const asked: Asked[] = [];
      const failing = createMeanwhile(
        { 'POST /containers/create': { status: 409, body: refusal('in use') } },
        asked,
      );
      await expect(failing).rejects.toMatchObject({ code: 'runtime/name-taken' });
      const calls = asked.map(({ what }) => what);
      expect(calls.filter((what) => what === 'POST /containers/create')).toHaveLength(1);
      expect(calls.filter((what) => what.startsWith('DELETE '))).toEqual(['DELETE /networks/n1']);
    });

    test('tells that the engine has been asked for it, once', async () => {
      const [seen, podman] = [await engine(new Spares()), await engine(new Spares(), true)];
      const told = vi.fn();
      await podman.runtime.makeAhead?.(undefined, told);
      expect(told).not.toHaveBeenCalled();
      await seen.runtime.makeAhead?.(undefined, told);
      expect(told).toHaveBeenCalledOnce();
    });

    test('uses it also where what others left cannot be removed, which is tried again with the next', async () => {
      const left = {
        Id: 'n0',
        Name: 'skep-spare-0',
        Labels: { 'skep.state': 'owner', 'skep.network': 'outward' },
      };
      const seen = await engine(new Spares(), false, {
        'GET /networks': [{ status: 500, body: refusal('no') }, { body: [left] }],
        'GET /containers/json': { body: [] },
        'DELETE /networks/n0': { status: 500, body: refusal('no') },
      });
      for (const network of ['n1', 'n2']) {
        await seen.runtime.makeAhead?.();
        expect(seen.calls().filter((what) => what === 'DELETE /networks/n0')).toHaveLength(
          network === 'n1' ? 0 : 1,
        );
        if (network === 'n2') continue;
        await seen.runtime.create(wanted);
        expect(seen.asked.at(-1)?.body).toMatchObject({ HostConfig: { NetworkMode: network } });
      }
    });

    test("is never put on it when it is another user's", async () => {
      const { runtime, asked } = await engine(new Spares());
      await runtime.makeAhead?.();
      await runtime.create({ ...wanted, labels: { 'skep.state': 'somebody' } });
      expect(asked.at(-1)?.body).toMatchObject({ HostConfig: { NetworkMode: 'n2' } });
    });

    test('has it taken back where it is not started, and none made on Podman', async () => {
      const spares = new Spares();
      const seen = await engine(spares);
      await seen.runtime.makeAhead?.();
      await spares.close();
      expect(seen.calls()).toContain('DELETE /networks/n1');
      const podman = await engine(new Spares(), true);
      await podman.runtime.makeAhead?.();
      expect(podman.calls()).toEqual([]);
    });
  });

  test.each([
    [403, 'Pool overlaps with other one on this address space'],
    [500, 'subnet 10.231.0.0/29 is already used on the host or by another config'],
  ])('takes other addresses where the engine uses those (%d %s)', async (status, text) => {
    const engine = await scriptedEngine({
      'POST /networks/create': [{ status, body: refusal(text) }, { status, body: refusal(text) }, made('n1')],
      'POST /containers/create': { status: 201 },
    });
    await engine.runtime.create(BRIDGE);
    const asked = engine.asked.filter(({ what }) => what === 'POST /networks/create');
    const subnets = asked.map(
      ({ body }) => (body as { IPAM: { Config: { Subnet: string }[] } }).IPAM.Config[0],
    );
    expect(new Set(subnets.map((one) => one?.Subnet)).size).toBe(3);
  });

  test('ends with a sentence where all addresses are used', async () => {
    const used = { status: 403, body: refusal('Pool overlaps with other one on this address space') };
    const engine = await scriptedEngine({ 'POST /networks/create': used });
    await expect(engine.runtime.create(BRIDGE)).rejects.toMatchObject({
      code: 'runtime/engine-refused',
      message:
        'the container engine refused to make a network for "a1": no private address range is free on this machine',
    });
    expect(engine.calls()).not.toContain('POST /containers/create');
  });

  const leftover = (more: object = {}): object => ({
    Id: 'n0',
    Name: 'skep-a1',
    Created: '2026-01-01T00:00:00Z',
    Labels: { 'skep.managed': 'true', 'skep.name': 'a1', 'skep.state': '', 'skep.network': 'outward' },
    ...more,
  });
  const TAKEN = { status: 409, body: refusal('network with name skep-a1 already exists') };

  test('removes a network of that name that an interrupted attempt left', async () => {
    const engine = await scriptedEngine({
      'POST /networks/create': [TAKEN, made('n1')],
      'GET /networks': { body: [leftover()] },
      'GET /containers/json': { body: [] },
      'DELETE /networks/n0': { status: 204 },
      'POST /containers/create': { status: 201 },
    });
    await engine.runtime.create(BRIDGE);
    expect(engine.calls()).toContain('DELETE /networks/n0');
    expect(engine.asked.at(-1)?.body).toMatchObject({ NetworkingConfig: { EndpointsConfig: { n1: {} } } });
  });

  test('removes one that the engine went on making for a program that was killed, and no other', async () => {
    const labels = { 'skep.managed': 'true', 'skep.name': 'a1', 'skep.state': '' };
    const internal = leftover({ Id: 'n2', Labels: { ...labels, 'skep.network': 'internal' } });
    const used = leftover({ Id: 'n3' });
    const engine = await scriptedEngine({
      'POST /networks/create': made('n1'),
      'GET /networks': { body: [leftover(), leftover({ Id: 'n1' }), internal, used] },
      'GET /containers/json': ({ query }) => ({
        body: query['filters']?.includes('n3') ? [{ Id: 'c1' }] : [],
      }),
      'DELETE /networks/n0': { status: 204 },
      'POST /containers/create': { status: 201 },
    });
    await engine.runtime.create(BRIDGE);
    expect(engine.calls().filter((what) => what.startsWith('DELETE'))).toEqual(['DELETE /networks/n0']);
  });

  test.each([
    ['of somebody else', [leftover({ Labels: null })], []],
    ['of another user', [leftover({ Labels: { 'skep.name': 'a1', 'skep.state': 'other', 'skep.network': 'outward' } })], []], // prettier-ignore
    ['that a container is on', [leftover()], [{ Id: 'c1' }]],
  ])('calls it otherwise where the name belongs to one %s', async (_, networks, containers) => {
    const engine = await scriptedEngine({
      'POST /networks/create': [TAKEN, made('n1')],
      'GET /networks': { body: networks },
      'GET /containers/json': { body: containers },
      'POST /containers/create': { status: 201 },
    });
    await engine.runtime.create(BRIDGE);
    expect(engine.calls()).not.toContain('DELETE /networks/n0');
    const names = engine.asked.filter(({ what }) => what === 'POST /networks/create').map(({ body }) => body);
    expect(names).toMatchObject([{ Name: 'skep-a1' }, { Name: 'skep-a1-random' }]);
  });

  test('that fails takes its network and volumes with it', async () => {
    const engine = await scriptedEngine({
      'POST /networks/create': made('n1'),
      'POST /volumes/create': { status: 201 },
      'POST /containers/create': { status: 500, body: refusal('disk full') },
      'DELETE /networks/n1': { status: 204 },
      'DELETE /volumes/skep--a1.data': { status: 204 },
    });
    await expect(engine.runtime.create({ ...BRIDGE, data: ['/data'] })).rejects.toThrow('disk full');
    expect(engine.calls()).toEqual(
      expect.arrayContaining(['DELETE /networks/n1', 'DELETE /volumes/skep--a1.data']),
    );
  });

  test('whose volumes cannot be made leaves no network, and the other way round', async () => {
    const script = {
      'POST /networks/create': made('n1'),
      'POST /volumes/create': { status: 201 },
      'DELETE /networks/n1': { status: 204 },
      'DELETE /volumes/skep--a1.data': { status: 204 },
    };
    const no = { status: 500, body: refusal('no') };
    const wanted = { ...BRIDGE, data: ['/data'] };
    const one = await scriptedEngine({ ...script, 'POST /volumes/create': no });
    await expect(one.runtime.create(wanted)).rejects.toThrow('no');
    expect(one.calls()).toContain('DELETE /networks/n1');
    const other = await scriptedEngine({ ...script, 'POST /networks/create': no });
    await expect(other.runtime.create(wanted)).rejects.toThrow('refused to make a network for "a1": no');
    expect(other.calls()).toContain('DELETE /volumes/skep--a1.data');
    expect(other.calls()).not.toContain('POST /containers/create');
  });

  test.each([
    [409, 'Conflict', 'runtime/name-taken', 'a container named "a1" exists already'],
    [
      500,
      'creating container storage: the container name "a1" is already in use by 0f1e. You have to remove that',
      'runtime/name-taken',
      'a container named "a1" exists already',
    ],
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

  test('or started is told with what to do where the disk of the engine is full', async () => {
    const full = { status: 500, body: refusal('mkdir /var/lib/docker/overlay2/1: no space left on device') };
    const hint =
      'free space on the disk of the container engine; skep prune removes images that no server uses';
    const engine = await scriptedEngine({
      'POST /containers/create': full,
      'POST /containers/a1/start': full,
    });
    await expect(engine.runtime.create(SPEC)).rejects.toMatchObject({ code: 'runtime/engine-refused', hint });
    await expect(engine.runtime.start('a1')).rejects.toMatchObject({ code: 'runtime/start-failed', hint });
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

describe('what a workload that learns did with files', () => {
  const seenOf = async (answer: object): Promise<unknown> => {
    const { runtime } = await scriptedEngine({ 'GET /containers/a1/changes': answer });
    const { paths, ...rest } = await runtime.seen('a1');
    return { paths: [...paths], ...rest };
  };
  const unseen = ['which files it read', 'whether it wrote to what is mounted'];

  test('is what changed beside its mounts, without directories above; the rest is said not to be seen', async () => {
    const body = ['/app', '/app/cache', '/app/cache/x', '/sbin', '/sbin/docker-init', '/var', '/tmp/y'].map(
      (Path) => ({ Path, Kind: 0 }),
    );
    const how = { changes: true, there: true };
    expect(await seenOf({ body })).toEqual({
      paths: [
        ['/app/cache/x', how],
        ['/var', how],
      ],
      complete: false,
      unseen,
    });
  });

  test('is not known of one that is not there', async () => {
    const nothing = { paths: [], complete: false, unseen: ['what it did with files', ...unseen] };
    expect(await seenOf({ status: 404 })).toEqual(nothing);
  });
});

describe('to start a workload', () => {
  test('that runs already is fine', async () => {
    const { runtime } = await scriptedEngine({ 'POST /containers/a1/start': { status: 304 } });
    await runtime.start('a1');
  });

  const GONE = { status: 404, body: refusal('network n0 not found') };
  const connections = { 'POST /networks/skep-a1/disconnect': {}, 'POST /networks/n1/connect': {} };

  test.each([
    'network n0 not found',
    'failed to set up container networking: network n0 not found',
    'unable to find network with name or ID n0: network not found',
  ])('whose network was removed gives it another one: %s', async (text) => {
    const engine = await scriptedEngine({
      ...connections,
      'POST /containers/a1/start': [{ status: 404, body: refusal(text) }, { status: 204 }],
      'GET /containers/a1/json': { body: container() },
      'GET /networks': { body: [] },
      'POST /networks/create': made('n1'),
    });
    await engine.runtime.start('a1');
    expect(engine.calls().slice(-3)).toEqual([
      'POST /networks/skep-a1/disconnect',
      'POST /networks/n1/connect',
      'POST /containers/a1/start',
    ]);
    expect(engine.asked.at(-3)?.body).toEqual({ Container: 'a1', Force: true });
  });

  test('that was made with the name of a network that never came gives it one of its own', async () => {
    const network = 'skep-spare-0123456789ab';
    const engine = await scriptedEngine({
      ...connections,
      [`POST /networks/${network}/disconnect`]: {},
      'POST /containers/a1/start': [
        { status: 404, body: refusal(`network ${network} not found`) },
        { status: 204 },
      ],
      'GET /containers/a1/json': {
        body: container({
          Config: { Image: 'image:1', Labels: { 'skep.network': network } },
          HostConfig: { NetworkMode: network },
          NetworkSettings: { Networks: { [network]: { NetworkID: '' } } },
        }),
      },
      'GET /networks': { body: [] },
      'POST /networks/create': made('n1'),
    });
    await engine.runtime.start('a1');
    expect(engine.calls()).toContain('POST /networks/n1/connect');
  });

  test('on the network that all shared in earlier versions, and is gone, gives it one of its own', async () => {
    const Networks = { 'skep-external': { NetworkID: 'n0' } };
    const engine = await scriptedEngine({
      ...connections,
      'POST /networks/skep-external/disconnect': {},
      'POST /containers/a1/start': [GONE, { status: 204 }],
      'GET /containers/a1/json': {
        body: container({ Config: { Image: 'image:1', Labels: {} }, NetworkSettings: { Networks } }),
      },
      'GET /networks': { body: [] },
      'POST /networks/create': made('n1'),
    });
    await engine.runtime.start('a1');
    expect(engine.calls()).toContain('POST /networks/n1/connect');
  });

  test('whose new network goes away too is not tried for ever', async () => {
    const engine = await scriptedEngine({
      ...connections,
      'POST /containers/a1/start': GONE,
      'GET /containers/a1/json': { body: container() },
      'GET /networks': { body: [] },
      'POST /networks/create': made('n1'),
    });
    await expect(engine.runtime.start('a1')).rejects.toMatchObject({ code: 'runtime/start-failed' });
    expect(engine.calls().filter((call) => call === 'POST /containers/a1/start')).toHaveLength(2);
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

  test.each([
    ['task 6c1f: already exists', true],
    ['network already exists', false],
  ])('that fails with %j is beyond repetition: %s', async (text, expected) => {
    const { runtime } = await scriptedEngine({
      'POST /containers/a1/start': { status: 409, body: refusal(text) },
    });
    expect(isStuck(await runtime.start('a1').catch((error: unknown) => error))).toBe(expected);
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
      'GET /containers/a1/json',
      'DELETE /containers/a1',
      'POST /containers/a1/wait',
      'GET /containers/json',
      'GET /networks',
    ]);
  });

  const named = (Id: string, Name: string, Labels: object | null): object => ({
    Id,
    Name,
    Created: '2026-01-01T00:00:00Z',
    Labels,
  });

  test('removes the network that was made ahead of a workload with it', async () => {
    const Labels = { 'skep.state': 'owner', 'skep.network': 'skep-spare-0123456789ab' };
    const engine = await scriptedEngine({
      'GET /containers/a1/json': { body: container({ Config: { Image: 'image:1', Labels } }) },
      'DELETE /containers/a1': { status: 204 },
      'GET /networks': { body: [] },
      'GET /containers/json': { body: [] },
      'DELETE /networks/skep-spare-0123456789ab': { status: 204 },
    });
    await engine.runtime.remove('a1');
    expect(engine.calls().filter((call) => call.startsWith('DELETE'))).toEqual([
      'DELETE /containers/a1',
      'DELETE /networks/skep-spare-0123456789ab',
    ]);
  });

  test('removes the networks of a workload with it, and no other', async () => {
    const ours = { 'skep.managed': 'true', 'skep.name': 'a1' };
    const engine = await scriptedEngine({
      'GET /containers/a1/json': { body: container() },
      'DELETE /containers/a1': { status: 204 },
      'GET /networks': {
        body: [named('n0', 'skep-a1', ours), named('n2', 'skep-a12', { ...ours, 'skep.name': 'a12' })],
      },
      'GET /containers/json': { body: [] },
      'DELETE /networks/n0': { status: 204 },
    });
    await engine.runtime.remove('a1');
    expect(engine.calls().filter((call) => call.startsWith('DELETE'))).toEqual([
      'DELETE /containers/a1',
      'DELETE /networks/n0',
    ]);
  });

  test('removes the network that all shared with its last workload, and never one of somebody else', async () => {
    const ours = { 'skep.managed': 'true' };
    const all = [
      named('n1', 'skep-external', ours),
      named('n2', 'skep-external', null),
      named('n3', 'skep-external-2', ours),
      named('n4', 'skep-external', { ...ours, 'skep.name': 'external' }),
    ];
    const script = {
      'GET /containers/a1/json': {
        body: container({ NetworkSettings: { Networks: { 'skep-external': {} } } }),
      },
      'DELETE /containers/a1': { status: 204 },
      'GET /networks': { body: all },
      'DELETE /networks/n1': { status: 403, body: refusal('has active endpoints') },
    };
    const last = await scriptedEngine({ ...script, 'GET /containers/json': { body: [] } });
    await last.runtime.remove('a1');
    expect(last.calls().filter((call) => call.startsWith('DELETE /networks'))).toEqual([
      'DELETE /networks/n1',
    ]);
    const other = await scriptedEngine({ ...script, 'GET /containers/json': { body: [{ Id: 'other' }] } });
    await other.runtime.remove('a1');
    expect(other.calls()).not.toContain('DELETE /networks/n1');
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
      'GET /containers/json': {
        body: [{ Id: 'c1' }, { Id: 'c2' }, { Id: 'c3', Labels: { 'skep.auxiliary-workload': 'true' } }],
      },
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

test('a container that ended while Podman was removing it is removed all the same', async () => {
  const improper = { status: 500, body: refusal('sending SIGKILL: container state improper: stopped') };
  const engine = await scriptedEngine(
    { 'DELETE /containers/a1': [improper, { status: 204 }], 'GET /networks': { body: [] } },
    { podman: true },
  );
  await engine.runtime.remove('a1');
  expect(engine.calls().filter((one) => one === 'DELETE /containers/a1')).toHaveLength(2);
  const stuck = await scriptedEngine({ 'DELETE /containers/a1': improper }, { podman: true });
  await expect(stuck.runtime.remove('a1')).rejects.toThrow('refused to remove "a1"');
});

test('Podman is given no log driver that it does not have', async () => {
  const engine = await scriptedEngine({ 'POST /containers/create': { status: 201 } }, { podman: true });
  await engine.runtime.create(SPEC);
  expect(engine.asked[0]?.body).not.toHaveProperty('HostConfig.LogConfig');
});

test('a mount that the named user may not write is told', async () => {
  const { runtime } = await scriptedEngine({});
  const wanted = { name: 'a1', mounts: [{ source: '/usr', target: '/data', readOnly: false }] };
  const own = async (user: string) =>
    (await runtime.cautions({ ...wanted, user })).filter((one) => !one.includes('setuid'));
  expect(await own('1234')).toEqual(['the server may only read "/usr"']);
  expect(await own('root')).toEqual([]);
});

test.each([
  [{ SecurityOptions: ['name=seccomp,profile=default'] }, false],
  [{ SecurityOptions: ['name=seccomp', 'name=rootless'] }, true],
  [{ SecurityOptions: ['name=userns'] }, true],
  [{ SecurityOptions: ['name=seccomp'], Rootless: true }, true],
  [{}, false],
])('an engine of %j has numbers of users of its own: %j', async (info, mapsUsers) => {
  const { runtime } = await scriptedEngine({ 'GET /info': { body: { ServerVersion: '1', ...info } } });
  expect(await runtime.probe(AbortSignal.timeout(5_000))).toMatchObject({ mapsUsers });
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

test('limits that Podman leaves out without root are told', async () => {
  const limits = { memory: 1e9, pids: 100, disk: 1e9, cpus: 1 };
  const cautionsOf = async (info: object): Promise<readonly string[]> => {
    const body = { MemoryLimit: true, PidsLimit: true, CpuCfsQuota: true, ...info };
    const { runtime } = await scriptedEngine({ 'GET /info': { body } }, { podman: true });
    return runtime.cautions({ name: 'a1', mounts: [], limits });
  };
  const files = 'its files cannot be limited by this engine, which runs without root';
  expect(await cautionsOf({ Rootless: false, CgroupVersion: '1' })).toEqual([]);
  expect(await cautionsOf({ Rootless: true, CgroupVersion: '2' })).toEqual([files]);
  expect(await cautionsOf({ Rootless: true, CgroupVersion: '1' })).toEqual([
    ...['memory', 'processes', 'processor time'].map(
      (what) => `its ${what} cannot be limited by this engine (control groups)`,
    ),
    files,
  ]);
});

test('what an engine can limit it has said when it was asked who it is', async () => {
  const body = { ServerVersion: '1', MemoryLimit: false };
  const engine = await scriptedEngine({ 'GET /info': { body } });
  await engine.runtime.probe(signal);
  const limits = { memory: 1e9, pids: 0, disk: 0, cpus: 0 };
  expect(await engine.runtime.cautions({ name: 'a1', mounts: [], limits })).toHaveLength(1);
  expect(engine.calls()).toEqual(['GET /info']);
});

test('what a removal left that was cut short goes with the next, and nothing of another user', async () => {
  const network = (Id: string, owner: string): object => ({
    Id,
    Name: 'skep-a1',
    Created: '2026-01-01T00:00:00Z',
    Labels: { 'skep.managed': 'true', 'skep.name': 'a1', 'skep.state': owner },
  });
  const engine = await scriptedEngine({
    'GET /containers/json': ({ query }) => ({
      body: [{ Id: 'g1' }, ...(query['filters']?.includes('skep.state=owner') ? [] : [{ Id: 'g2' }])],
    }),
    'DELETE /containers/g1': { status: 204 },
    'GET /networks': { body: [network('n1', 'owner'), network('n2', 'other')] },
    'DELETE /networks/n1': { status: 204 },
  });
  await engine.runtime.remove('a1');
  expect(engine.calls().filter((what) => what.startsWith('DELETE'))).toEqual([
    'DELETE /containers/a1',
    'DELETE /containers/g1',
    'DELETE /networks/n1',
  ]);
});
