import { describe, expect, test } from 'vitest';
import type { WorkloadSpec } from '../../runtime.ts';
import { scriptedEngine, type EngineUnderTest, type Script } from '../engine.fixture.ts';

const POLICY = {
  workload: 'a1',
  allowAll: false,
  hosts: ['api.example'],
  ports: [443],
  inbound: [],
  runtimeGateway: false,
};
const SPEC: WorkloadSpec = {
  name: 'a1',
  reference: 'image:1',
  args: [],
  env: { HTTPS_PROXY: 'http://elsewhere.example:1', KEPT: '1' },
  labels: { 'skep.state': 'owner', 'skep.network-isolation': 'true' },
  stdio: true,
  mounts: [],
  network: 'bridge',
  isolation: POLICY,
  ports: [{ hostIp: '127.0.0.1', hostPort: 4000, containerPort: 3000 }],
  privileged: false,
};
const HERE = { body: { Os: 'linux', Arch: process.arch === 'x64' ? 'amd64' : process.arch } };
const refusal = (message: string): object => ({ message });

/** Any tag of the image, since that depends on the running Node. */
function withImage(script: Record<string, Script>): Record<string, Script> {
  return new Proxy(script, {
    get: (all, key: string) =>
      /^GET \/images\/localhost\/skeplocal\/gateway:[0-9a-f]{16}\/json$/.test(key)
        ? { body: { Id: 'sha256:gateway', Config: {} } }
        : all[key],
  });
}

const networks: Script = ({ body }) => ({
  status: 201,
  body: { Id: (body as { Internal: boolean }).Internal ? 'inside' : 'outside' },
});
const bodiesOf = (engine: EngineUnderTest, what: string): unknown[] =>
  engine.asked.filter((one) => one.what === what).map(({ body }) => body);

describe('to create an isolated workload', () => {
  test('makes an internal network that the machine is not on, another one for its gateway, and the image of that', async () => {
    const engine = await scriptedEngine(
      withImage({
        'GET /version': HERE,
        'POST /networks/create': networks,
        'POST /containers/create': { status: 201 },
      }),
    );
    await engine.runtime.create(SPEC);
    expect(bodiesOf(engine, 'POST /networks/create')).toMatchObject([
      {
        Name: 'skep-a1',
        Driver: 'bridge',
        Internal: false,
        Options: { 'com.docker.network.bridge.enable_icc': 'false' },
      },
      {
        Name: 'skep-a1-internal',
        Driver: 'macvlan',
        Internal: true,
        EnableIPv6: false,
        Options: { parent: 'br-outside' },
      },
    ]);
    const [body] = bodiesOf(engine, 'POST /containers/create') as [Record<string, unknown>];
    const gateway = /^10\.231\.\d+\.\d+$/;
    expect(body).toMatchObject({
      Labels: { 'skep.network-isolation': 'true', 'skep.network': 'skep-a1-internal' },
      // Its port is published by its gateway.
      ExposedPorts: {},
      HostConfig: {
        NetworkMode: 'inside',
        PortBindings: {},
        Dns: [expect.stringMatching(gateway)],
        Sysctls: { 'net.ipv6.conf.all.disable_ipv6': '1', 'net.ipv6.conf.default.disable_ipv6': '1' },
      },
      NetworkingConfig: {
        EndpointsConfig: { inside: { IPAMConfig: { IPv4Address: expect.stringMatching(gateway) } } },
      },
    });
    const { Dns } = body['HostConfig'] as { Dns: string[] };
    expect(body['Env']).toEqual(expect.arrayContaining([`HTTPS_PROXY=http://${Dns[0]}:3128`, 'KEPT=1']));
    expect(body['Env']).not.toContain('HTTPS_PROXY=http://elsewhere.example:1');
  });

  test.each([
    ['its container cannot be made', { 'POST /containers/create': { status: 500, body: refusal('full') } }],
    ['the engine has no version', { 'GET /version': { status: 500, body: refusal('full') } }],
  ])('leaves no network where %s', async (_, broken) => {
    const engine = await scriptedEngine(
      withImage({
        'GET /version': HERE,
        'POST /networks/create': networks,
        'DELETE /networks/inside': { status: 204 },
        'DELETE /networks/outside': { status: 204 },
        ...broken,
      }),
    );
    await expect(engine.runtime.create(SPEC)).rejects.toThrow('full');
    expect(engine.calls()).toEqual(
      expect.arrayContaining(['DELETE /networks/inside', 'DELETE /networks/outside']),
    );
  });

  test('leaves no network where the other one cannot be made', async () => {
    const engine = await scriptedEngine(
      withImage({
        'GET /version': HERE,
        'POST /networks/create': (asked) =>
          (asked.body as { Internal: boolean }).Internal
            ? { status: 500, body: refusal('operation not supported') }
            : { status: 201, body: { Id: 'outside' } },
        'DELETE /networks/outside': { status: 204 },
      }),
    );
    await expect(engine.runtime.create(SPEC)).rejects.toMatchObject({
      code: 'runtime/engine-refused',
      message: 'the container engine refused to make a network for "a1": operation not supported',
      hint: expect.stringContaining('needs macvlan in the kernel of the engine'),
    });
    expect(engine.calls()).toContain('DELETE /networks/outside');
    expect(engine.calls()).not.toContain('POST /containers/create');
  });

  test('is refused on Podman before anything is made', async () => {
    const engine = await scriptedEngine(withImage({ 'GET /version': HERE }), { podman: true });
    await expect(engine.runtime.create(SPEC)).rejects.toMatchObject({
      code: 'runtime/invalid-workload',
      message: expect.stringContaining('"a1" cannot be isolated: Podman'),
    });
    expect(engine.calls()).toEqual([]);
  });
});

describe('to start an isolated workload', () => {
  const LABEL = JSON.stringify({
    policy: POLICY,
    internal: '10.231.4.8/29',
    port: { hostIp: '127.0.0.1', hostPort: 4000, containerPort: 3000 },
  });
  const container = (labels: object, Running = false): object => ({
    Config: {
      Labels: { 'skep.network-isolation': 'true', 'skep.state': 'owner', 'skep.isolation': LABEL, ...labels },
    },
    State: { Running },
    NetworkSettings: { Networks: { 'skep-a1-internal': { NetworkID: 'inside' } } },
  });
  const network = (Id: string, kind: string, Subnet: string): object => ({
    Id,
    Name: `skep-a1-${kind}`,
    Created: '2026-01-01T00:00:00Z',
    Labels: { 'skep.managed': 'true', 'skep.name': 'a1', 'skep.network': kind },
    IPAM: { Config: [{ Subnet }] },
  });
  const frame = (stream: 1 | 2, text: string): Buffer => {
    const head = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
    head.writeUInt32BE(Buffer.byteLength(text), 4);
    return Buffer.concat([head, Buffer.from(text)]);
  };
  const script = (more: Record<string, Script> = {}): Record<string, Script> =>
    withImage({
      'GET /version': HERE,
      'GET /containers/a1/json': { body: container({}) },
      'GET /networks': {
        body: [
          network('inside', 'internal', '10.231.4.8/29'),
          network('outside', 'outward', '10.231.9.0/29'),
        ],
      },
      'GET /networks/bridge': { body: { IPAM: { Config: [{ Subnet: '172.17.0.0/16' }] } } },
      'POST /containers/create': { status: 201, body: { Id: 'g1' } },
      'POST /networks/inside/connect': {},
      'POST /containers/g1/start': { status: 204 },
      'GET /containers/g1/logs': { raw: frame(1, '{"listening":true}\n') },
      'DELETE /containers/g1': { status: 204 },
      'POST /containers/a1/start': { status: 204 },
      ...more,
    });

  test('starts its gateway first, and the server once that listens', async () => {
    const engine = await scriptedEngine(script());
    await engine.runtime.start('a1');
    expect(engine.calls().slice(-5)).toEqual([
      'POST /containers/create',
      'POST /networks/inside/connect',
      'POST /containers/g1/start',
      'GET /containers/g1/logs',
      'POST /containers/a1/start',
    ]);
    const [body] = bodiesOf(engine, 'POST /containers/create') as [{ Env: string[]; HostConfig: object }];
    expect(body).toMatchObject({
      User: '65532:65532',
      Labels: { 'skep.auxiliary-workload': 'true', 'skep.name': 'a1', 'skep.state': 'owner' },
      HostConfig: {
        NetworkMode: 'outside',
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        Sysctls: { 'net.ipv4.ip_forward': '0' },
        PidsLimit: 64,
        Memory: 128 * 1024 * 1024,
        RestartPolicy: { Name: 'no' },
        PortBindings: { '3000/tcp': [{ HostIp: '127.0.0.1', HostPort: '4000' }] },
      },
      NetworkingConfig: { EndpointsConfig: { outside: { IPAMConfig: { IPv4Address: '10.231.9.2' } } } },
    });
    expect(body.HostConfig).not.toHaveProperty('ExtraHosts');
    const told = body.Env.find((one) => one.startsWith('SKEP_GATEWAY='))?.slice('SKEP_GATEWAY='.length);
    expect(JSON.parse(told ?? '')).toMatchObject({
      mode: 'listen',
      policy: POLICY,
      answerWith: '10.231.4.10',
      runtimeGateway: { addresses: ['172.17.0.1', '10.231.9.1', '10.231.4.9'] },
      listeners: expect.arrayContaining([
        { serve: 'proxy', host: '10.231.4.10', port: 3128 },
        { serve: 'dns', host: '10.231.4.10', port: 53 },
        // From outside the workload's network only its server is to be reached.
        {
          serve: 'ingress',
          host: '10.231.9.2',
          port: 3000,
          to: { host: '10.231.4.11', port: 3000, proxy: '127.0.0.1:4000' },
        },
      ]),
    });
  });

  test('goes out over the network below its internal one, and what a killed program left besides is removed', async () => {
    const mine = { 'skep.managed': 'true', 'skep.name': 'a1', 'skep.state': 'owner' };
    const outward = (id: string, labels: object = mine): object => ({
      ...network(id, 'outward', '10.231.9.0/29'),
      Created: '2025-01-01T00:00:00Z',
      Labels: { ...labels, 'skep.network': 'outward' },
    });
    const inside = { ...network('inside', 'internal', '10.231.4.8/29'), Options: { parent: 'br-outside' } };
    const internal = { ...network('late', 'internal', '10.231.7.8/29'), Options: { parent: 'br-older' } };
    const late = { ...internal, Labels: { ...mine, 'skep.network': 'internal' } };
    const theirs = outward('theirs', { ...mine, 'skep.state': 'somebody' });
    const engine = await scriptedEngine(
      script({ 'GET /networks': { body: [outward('older'), inside, late, theirs, outward('outside')] } }),
    );
    await engine.runtime.start('a1');
    expect(bodiesOf(engine, 'POST /containers/create')).toMatchObject([
      { HostConfig: { NetworkMode: 'outside' } },
    ]);
    const removed = engine.calls().filter((what) => what.startsWith('DELETE /networks'));
    expect(removed.toSorted()).toEqual(['DELETE /networks/late', 'DELETE /networks/older']);
  });

  test('gives its gateway the names of the machine where the person allowed that', async () => {
    const label = JSON.stringify({ policy: { ...POLICY, runtimeGateway: true }, internal: '10.231.4.8/29' });
    const engine = await scriptedEngine(
      script({ 'GET /containers/a1/json': { body: container({ 'skep.isolation': label }) } }),
    );
    await engine.runtime.start('a1');
    expect(bodiesOf(engine, 'POST /containers/create')).toMatchObject([
      { HostConfig: { ExtraHosts: expect.arrayContaining(['host.docker.internal:host-gateway']) } },
    ]);
  });

  test.each<[string, Record<string, Script>, RegExp]>([
    [
      'ends',
      { 'GET /containers/g1/logs': { raw: frame(2, 'Error: no such file\n') } },
      /Error: no such file/,
    ],
    ['says nothing', { 'GET /containers/g1/logs': { raw: Buffer.alloc(0) } }, /it ended/],
    [
      'cannot be started',
      { 'POST /containers/g1/start': { status: 500, body: refusal('port is already allocated') } },
      /the gateway of workload "a1" could not be started: port is already allocated/,
    ],
    ['cannot be connected', { 'POST /networks/inside/connect': { status: 500, body: refusal('no') } }, /no/],
  ])('whose gateway %s starts nothing and leaves no gateway', async (_, broken, message) => {
    const engine = await scriptedEngine(script(broken));
    await expect(engine.runtime.start('a1')).rejects.toThrow(message);
    expect(engine.calls()).toContain('DELETE /containers/g1');
    expect(engine.calls()).not.toContain('POST /containers/a1/start');
  });

  test('that cannot be started keeps no gateway', async () => {
    const gateways: Script = [{ body: [] }, { body: [{ Id: 'g1' }] }];
    const engine = await scriptedEngine(
      script({
        'GET /containers/json': gateways,
        'POST /containers/a1/start': { status: 500, body: refusal('no such program') },
      }),
    );
    await expect(engine.runtime.start('a1')).rejects.toThrow('no such program');
    expect(engine.calls().at(-1)).toBe('DELETE /containers/g1');
  });

  test('that runs, with its gateway, is left alone', async () => {
    const engine = await scriptedEngine(
      script({
        'GET /containers/a1/json': { body: container({}, true) },
        'GET /containers/json': { body: [{ Id: 'g1' }] },
        'POST /containers/a1/start': { status: 304 },
      }),
    );
    await engine.runtime.start('a1');
    expect(engine.calls()).not.toContain('POST /containers/create');
    expect(engine.calls()).not.toContain('DELETE /containers/g1');
  });

  test.each([
    ['no label', undefined],
    ['text', 'everything'],
    ['another shape', '{}'],
    [
      'a key that this version does not know',
      JSON.stringify({ ...(JSON.parse(LABEL) as object), denies: [] }),
    ],
    ['no range', JSON.stringify({ policy: POLICY, internal: 'everywhere' })],
  ])('of which it is not known what it may reach (%s) is not started', async (_, label) => {
    const engine = await scriptedEngine(
      script({ 'GET /containers/a1/json': { body: container({ 'skep.isolation': label }) } }),
    );
    await expect(engine.runtime.start('a1')).rejects.toMatchObject({ code: 'runtime/start-failed' });
    expect(engine.calls()).toEqual(['GET /containers/a1/json']);
  });

  test('whose gateway’s name somebody else has says so', async () => {
    const engine = await scriptedEngine(
      script({ 'POST /containers/create': { status: 409, body: refusal('Conflict') } }),
    );
    await expect(engine.runtime.start('a1')).rejects.toMatchObject({
      code: 'runtime/name-taken',
      message: 'a container named "skep-a1-gateway" exists already, and the gateway of "a1" needs that name',
    });
  });

  test('whose networks are gone gets them again, the internal one with the addresses that it was told', async () => {
    const engine = await scriptedEngine(
      script({
        'GET /networks': { body: [] },
        'POST /networks/create': networks,
        'POST /networks/skep-a1-internal/disconnect': {},
      }),
    );
    await engine.runtime.start('a1');
    expect(bodiesOf(engine, 'POST /networks/create')).toMatchObject([
      { Internal: false },
      {
        Internal: true,
        IPAM: { Config: [{ Subnet: '10.231.4.8/29' }] },
        Options: { parent: 'br-outside' },
      },
    ]);
    expect(bodiesOf(engine, 'POST /networks/inside/connect')[0]).toEqual({
      Container: 'a1',
      EndpointConfig: { IPAMConfig: { IPv4Address: '10.231.4.11' } },
    });
  });

  test('whose outward network is gone gets the internal one anew too, which stood on its bridge', async () => {
    const engine = await scriptedEngine(
      script({
        'GET /networks': { body: [network('before', 'internal', '10.231.4.8/29')] },
        'DELETE /networks/before': { status: 204 },
        'POST /networks/create': networks,
        'POST /networks/skep-a1-internal/disconnect': {},
      }),
    );
    await engine.runtime.start('a1');
    expect(engine.calls().filter((call) => call.includes('/networks/'))).toEqual([
      'POST /networks/create',
      'POST /networks/skep-a1-internal/disconnect',
      'DELETE /networks/before',
      'POST /networks/create',
      'POST /networks/inside/connect',
      'GET /networks/bridge',
      'POST /networks/inside/connect',
    ]);
  });

  test('whose internal network goes in the moment of its start is not put on one that leads out', async () => {
    const engine = await scriptedEngine(
      script({
        'GET /containers/a1/json': {
          body: {
            ...container({ 'skep.network': 'skep-a1-internal' }),
            HostConfig: { NetworkMode: 'inside' },
          },
        },
        'POST /containers/a1/start': { status: 404, body: refusal('network inside not found') },
        'POST /networks/skep-a1-internal/disconnect': {},
        'POST /networks/outside/connect': {},
      }),
    );
    await expect(engine.runtime.start('a1')).rejects.toThrow('network inside not found');
    expect(engine.calls()).not.toContain('POST /networks/outside/connect');
  });

  test('that is on another network than its internal one by now is put on a new one', async () => {
    const engine = await scriptedEngine(
      script({
        'GET /networks': {
          body: [
            network('unused', 'internal', '10.231.4.8/29'),
            network('outside', 'outward', '10.231.9.0/29'),
          ],
        },
        'DELETE /networks/unused': { status: 204 },
        'POST /networks/create': networks,
        'POST /networks/skep-a1-internal/disconnect': {},
      }),
    );
    await engine.runtime.start('a1');
    expect(bodiesOf(engine, 'POST /networks/inside/connect')).toMatchObject([
      { Container: 'a1' },
      { Container: 'g1' },
    ]);
  });

  test('whose addresses are used by something else by now is not started', async () => {
    const engine = await scriptedEngine(
      script({
        'GET /networks': { body: [network('outside', 'outward', '10.231.9.0/29')] },
        'POST /networks/skep-a1-internal/disconnect': {},
        'POST /networks/create': { status: 403, body: refusal('Pool overlaps with other one') },
      }),
    );
    await expect(engine.runtime.start('a1')).rejects.toThrow(
      'refused to make a network for "a1": its addresses, 10.231.4.8/29, are used by something else by now',
    );
  });

  test('tells what its gateway wrote, and of no gateway nothing', async () => {
    const decided = {
      time: '2026-01-01T00:00:00.000Z',
      decision: 'denied',
      host: 'x.example',
      via: 'dns',
      count: 2,
    };
    const lines = frame(1, `{"listening":true}\n${JSON.stringify(decided)}\n`);
    const engine = await scriptedEngine({
      'GET /containers/json': { body: [{ Id: 'g1' }] },
      'GET /containers/g1/logs': { raw: Buffer.concat([lines, frame(2, 'noise\n')]) },
    });
    expect(await engine.runtime.traffic('a1')).toEqual([decided]);
    expect(await (await scriptedEngine({})).runtime.traffic('a1')).toEqual([]);
  });
});

describe('the image of the gateway', () => {
  const created = { 'POST /networks/create': networks, 'POST /containers/create': { status: 201 } };

  test('is made of the running Node once, says whose it is, and takes the place of an earlier one', async () => {
    const asked: string[] = [];
    const engine = await scriptedEngine({
      'GET /version': HERE,
      'POST /images/create': ({ query }) => {
        // The last of those that were given.
        expect(query['changes']).toBe('LABEL skep.build=owner-random');
        return { lines: [{ status: 'Importing' }, { status: NEW }] };
      },
      [`POST /images/${NEW}/tag`]: ({ query }) => {
        asked.push(`${query['repo'] ?? ''}:${query['tag'] ?? ''}`);
        return { status: 201 };
      },
      'GET /images/json': () => ({
        body: [
          { Id: 'old', RepoTags: ['localhost/skeplocal/gateway:0000000000000000'], Labels: own },
          { Id: 'new', RepoTags: asked, Labels: own },
          { Id: 'theirs', RepoTags: null, Labels: { ...own, 'skep.state': 'other' } },
        ],
      }),
      'DELETE /images/old': { status: 200 },
      ...created,
    });
    await engine.runtime.create(SPEC);
    expect(asked).toEqual([expect.stringMatching(/^localhost\/skeplocal\/gateway:[0-9a-f]{16}$/)]);
    expect(engine.calls().filter((call) => call.startsWith('DELETE'))).toEqual(['DELETE /images/old']);
  });
  const NEW = `sha256:${'0'.repeat(64)}`;
  const own = { 'skep.managed': 'true', 'skep.state': 'owner' };

  test('that the engine cannot take is an error, and no container is made', async () => {
    const engine = await scriptedEngine({
      'GET /version': HERE,
      'POST /images/create': { lines: [{ status: 'Importing' }, { error: 'no space left' }] },
      'DELETE /networks/inside': { status: 204 },
      'DELETE /networks/outside': { status: 204 },
      ...created,
    });
    await expect(engine.runtime.create(SPEC)).rejects.toThrow(/no space left/);
    expect(engine.calls()).not.toContain('POST /containers/create');
  });

  test.each([
    [
      'an engine of another machine',
      {},
      { body: { Os: 'linux', Arch: 's390x' } },
      /^docker\.io\/library\/node@/,
    ],
    [
      'the person’s wish',
      { SKEP_EGRESS_IMAGE: 'mirror.example/node:24' },
      HERE,
      /^mirror\.example\/node:24$/,
    ],
  ])('is built on an image with Node for %s', async (_, env, version, base) => {
    let dockerfile = '';
    const script: Record<string, Script> = {
      'GET /version': version,
      'POST /build': ({ body }) => {
        dockerfile = String(body);
        return { lines: [{ stream: 'done' }] };
      },
      'GET /images/json': { body: [] },
      ...created,
    };
    const engine = await scriptedEngine(
      new Proxy(script, {
        get: (all, key: string) =>
          /^GET \/images\/.*node[:@].*\/json$/.test(key)
            ? { body: { Id: 'sha256:node', Config: {} } }
            : all[key],
      }),
      { env },
    );
    await engine.runtime.create(SPEC);
    const [, from = ''] = /^FROM (\S+)$/m.exec(dockerfile.replaceAll('\0', '\n')) ?? [];
    expect(from.replace(/:24-alpine@/, '@')).toMatch(base);
    expect(dockerfile).toContain('COPY gateway.mjs /gateway.mjs');
  });
});
