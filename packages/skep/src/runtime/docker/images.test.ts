import { describe, expect, test } from 'vitest';
import { scriptedEngine } from './engine.fixture.ts';

const signal = new AbortController().signal;
const image = (Id: string, more: object = {}): object => ({ Id, Config: { ...more } });

describe('to have an image', () => {
  const prepare = async (
    engine: Awaited<ReturnType<typeof scriptedEngine>>,
    reference: string,
  ): Promise<unknown> =>
    engine.runtime.prepare({
      source: { kind: 'image', reference },
      addPackages: [],
      report: engine.report,
      signal,
    });

  test('takes one with a tag from the engine without asking a registry', async () => {
    const engine = await scriptedEngine({
      'GET /images/image:1/json': { body: image('i', { ExposedPorts: { '80/tcp': {} } }) },
    });
    expect(await prepare(engine, 'image:1')).toEqual({
      reference: 'image:1',
      asRoot: true,
      ours: false,
      exposedPorts: [80],
      volumes: [],
    });
    expect(engine.told).toEqual([]);
  });

  test('pulls what is not there, with the tag that the reference means', async () => {
    const engine = await scriptedEngine({
      'GET /images/team/image/json': [{ status: 404 }, { body: image('i') }],
      'POST /images/create': { lines: [{ status: 'Pulling from team/image' }] },
    });
    await prepare(engine, 'team/image');
    expect(engine.asked[1]?.query).toEqual({ fromImage: 'team/image', tag: 'latest' });
    expect(engine.told).toEqual([
      'Pulling team/image',
      'Pulling from team/image',
      'Successfully pulled team/image',
    ]);
  });

  test('signs in with what the environment says of that registry', async () => {
    const engine = await scriptedEngine(
      {
        'GET /images/ghcr.io/team/image:1/json': [{ status: 404 }, { body: image('i') }],
        'POST /images/create': { lines: [] },
      },
      { env: { REGISTRY_GHCR_IO_USERNAME: 'me', REGISTRY_GHCR_IO_PASSWORD: 'hunter2' } },
    );
    await prepare(engine, 'ghcr.io/team/image:1');
    const login = Buffer.from(String(engine.asked[1]?.headers['x-registry-auth']), 'base64url').toString();
    expect(JSON.parse(login)).toMatchObject({ username: 'me', password: 'hunter2' });
    expect(engine.told.join('\n')).not.toContain('hunter2');
  });

  const DIGEST = `sha256:${'a'.repeat(64)}`;
  // What is asked of the engine where it has the image, and where it has not.
  test.each([
    ['team/image', 'pulls', 'pulls', { fromImage: 'team/image', tag: 'latest' }],
    ['team/image:latest', 'pulls', 'pulls', { fromImage: 'team/image', tag: 'latest' }],
    ['team/image:1.2', 'takes', 'pulls', { fromImage: 'team/image', tag: '1.2' }],
    [`team/image@${DIGEST}`, 'takes', 'pulls', { fromImage: 'team/image', tag: DIGEST }],
    [`team/image:latest@${DIGEST}`, 'takes', 'pulls', { fromImage: 'team/image', tag: DIGEST }],
  ])('%s: one that is there it %s, one that is not it %s', async (reference, ifThere, ifNot, query) => {
    const there = { body: image('i') };
    for (const [how, answers] of [
      [ifThere, there],
      [ifNot, [{ status: 404 }, there]],
    ] as const) {
      const engine = await scriptedEngine({
        [`GET /images/${reference}/json`]: answers,
        'POST /images/create': { lines: [] },
      });
      expect(await prepare(engine, reference)).toMatchObject({ reference });
      const pulls = engine.asked.filter(({ what }) => what === 'POST /images/create');
      expect(pulls.map((one) => one.query)).toEqual(how === 'pulls' ? [query] : []);
    }
  });

  test.each(['team/image', 'team/image:latest', 'team/image:1.2', `team/image@${DIGEST}`])(
    '%s is an error where it is neither there nor to be had',
    async (reference) => {
      const engine = await scriptedEngine({ 'POST /images/create': { lines: [{ error: 'denied' }] } });
      await expect(prepare(engine, reference)).rejects.toMatchObject({
        code: 'runtime/image-not-found',
        message: `image not found in registry: "${reference}" (denied)`,
      });
    },
  );

  test('asks for a moving tag each time, and falls back on the copy that is there', async () => {
    const engine = await scriptedEngine({
      'GET /images/image:latest/json': { body: image('i') },
      'POST /images/create': { lines: [{ error: 'dial tcp: lookup registry: no such host' }] },
    });
    await prepare(engine, 'image:latest');
    expect(engine.told.at(-1)).toMatch(/; using the local copy$/);
  });

  test.each([
    [{ status: 404, lines: [{ message: 'pull access denied' }] }, 'pull access denied', undefined],
    [
      { lines: [{ errorDetail: { message: 'manifest unknown' }, error: 'x' }] },
      'manifest unknown',
      undefined,
    ],
    [
      { lines: [{ error: 'Get "https://r/v2/": dial tcp: i/o timeout' }] },
      'i/o timeout',
      'the engine cannot reach that registry: check its name, the network, and the proxy of the engine',
    ],
  ])('that cannot be had is told with the reason: %j', async (answer, reason, hint) => {
    const engine = await scriptedEngine({ 'POST /images/create': answer });
    await expect(prepare(engine, 'image:1')).rejects.toMatchObject({
      code: 'runtime/image-not-found',
      message: expect.stringContaining(reason) as unknown,
      ...(hint === undefined ? {} : { hint }),
    });
  });

  test('that has no room on the disk of the engine is told so', async () => {
    const error = 'write /var/lib/docker/tmp/GetImageBlob1: no space left on device';
    const engine = await scriptedEngine({ 'POST /images/create': { lines: [{ error }] } });
    await expect(prepare(engine, 'image:1')).rejects.toMatchObject({
      code: 'runtime/image-not-found',
      message: `image "image:1" could not be pulled: the disk of the container engine is full (${error})`,
      hint: 'free space on the disk of the container engine; skep prune removes images that no server uses',
    });
  });

  test('for other processors than those of the engine is told, and had all the same', async () => {
    const told = async (Architecture: string): Promise<unknown> => {
      const engine = await scriptedEngine({
        'GET /images/image:1/json': { body: { ...image('i'), Os: 'linux', Architecture } },
        'GET /info': { body: { Architecture: 'x86_64' } },
      });
      return prepare(engine, 'image:1');
    };
    expect(await told('arm64')).toMatchObject({
      reference: 'image:1',
      doubt:
        'image "image:1" is for arm64, and the engine runs amd64: it starts only where the engine emulates arm64, and slowly',
    });
    expect(await told('amd64')).not.toHaveProperty('doubt');
  });

  test('for the platform that the person names pulls it where another one is there', async () => {
    const local = (Architecture: string): object => ({
      body: { ...image('i'), Os: 'linux', Architecture },
    });
    const asked = async (...there: readonly object[]): Promise<readonly unknown[]> => {
      const engine = await scriptedEngine(
        {
          'GET /images/image:1/json': there,
          'GET /info': { body: { Architecture: 'x86_64' } },
          'POST /images/create': { lines: [] },
        },
        { env: { DOCKER_DEFAULT_PLATFORM: 'linux/arm64' } },
      );
      await prepare(engine, 'image:1');
      return engine.asked.filter(({ what }) => what === 'POST /images/create').map(({ query }) => query);
    };
    const pulled = [{ fromImage: 'image', tag: '1', platform: 'linux/arm64' }];
    expect(await asked({ status: 404 }, local('arm64'))).toEqual(pulled);
    expect(await asked(local('amd64'), local('arm64'))).toEqual(pulled);
    expect(await asked(local('arm64'))).toEqual([]);
  });

  test.each(['', 'UPPER', 'a b', 'a//b', 'a:b:c'])('asks no engine for "%s"', async (reference) => {
    const engine = await scriptedEngine({});
    await expect(prepare(engine, reference)).rejects.toMatchObject({ code: 'runtime/image-not-found' });
    expect(engine.asked).toEqual([]);
  });

  test('only what Skep built is ever removed, and not while it is used', async () => {
    const engine = await scriptedEngine({
      'DELETE /images/skeplocal/npx-x:0123456789abcdef': { status: 409 },
    });
    await engine.runtime.discard('busybox:1');
    expect(engine.asked).toEqual([]);
    await engine.runtime.discard('skeplocal/npx-x:0123456789abcdef');
    expect(engine.calls()).toEqual(['DELETE /images/skeplocal/npx-x:0123456789abcdef']);
  });
});

describe('to sweep what builds left', () => {
  test('takes steps and layers of this user, and leaves workloads, others’ builds and what a person runs', async () => {
    const labels = (more: object = {}): object => ({ 'skep.build': 'owner-x', ...more });
    const engine = await scriptedEngine({
      'GET /containers/json': {
        body: [
          { Id: 'step', Image: 'sha256:layer', Labels: labels() },
          {
            Id: 'workload',
            Image: 'skeplocal/npx-x:0123456789abcdef',
            Labels: labels({ 'skep.name': 'a1' }),
          },
          { Id: 'persons', Image: 'skeplocal/npx-x:0123456789abcdef', Labels: labels() },
          { Id: 'others', Image: 'sha256:layer', Labels: { 'skep.build': 'other-x' } },
        ],
      },
      'GET /networks': { body: [] },
      'GET /images/json': {
        body: [
          { Id: 'layer', Labels: labels() },
          { Id: 'theirs', Labels: { 'skep.build': 'other-x' } },
          { Id: 'plain', Labels: null },
        ],
      },
      'DELETE /containers/step': { status: 204 },
      'DELETE /images/layer': { status: 404 },
    });
    await engine.runtime.sweep();
    expect(engine.calls().filter((call) => call.startsWith('DELETE'))).toEqual([
      'DELETE /containers/step',
      'DELETE /images/layer',
    ]);
  });

  test('takes networks and gateways of this user that belong to no workload, and what was made ahead', async () => {
    const part = (Id: string, name: string, more: object = {}): object => ({
      Id,
      Name: `skep-${name}`,
      Labels: { 'skep.managed': 'true', 'skep.name': name, 'skep.state': 'owner', ...more },
    });
    const gateway = { 'skep.auxiliary-workload': 'true' };
    const ahead = (Id: string, more: object = {}): object => ({
      Id,
      Name: `skep-spare-${Id}`,
      Labels: { 'skep.state': 'owner', 'skep.network': 'outward', ...more },
    });
    const holder = (Id: string, network: string): object => ({
      Id,
      Labels: { ...gateway, 'skep.state': 'owner', 'skep.network': `skep-spare-${network}` },
      HostConfig: { NetworkMode: network },
      NetworkSettings: { Networks: { [`skep-spare-${network}`]: { NetworkID: network } } },
    });
    const server = (Id: string, NetworkMode: string, more: object = {}): object => ({
      ...part(Id, Id),
      HostConfig: { NetworkMode },
      NetworkSettings: { Networks: more },
    });
    const engine = await scriptedEngine({
      'GET /containers/json': ({ query }) => {
        const [, network] = /skep\.network=skep-spare-(\w+)/.exec(query['filters'] ?? '') ?? [];
        if (network !== undefined) return { body: [{ Id: `h-${network}` }] };
        return {
          body: [
            part('workload', 'a1'),
            part('gateway', 'a1', gateway),
            part('left', 'a2', gateway),
            part('theirs', 'a3', { ...gateway, 'skep.state': 'other' }),
            ...['ahead', 'joined', 'gone'].map((one) => holder(`h-${one}`, one)),
            server('on', 'used', { 'skep-spare-used': { NetworkID: 'used' } }),
            server('made', 'skep-spare-named'),
            server('joining', 'container:h-joined'),
          ],
        };
      },
      'GET /networks': {
        body: [
          part('n1', 'a1'),
          part('n2', 'a2'),
          part('n3', 'a3', { 'skep.state': 'other' }),
          { Id: 'shared', Name: 'shared', Labels: { 'skep.managed': 'true', 'skep.state': 'owner' } },
          ahead('ahead'),
          ahead('theirs', { 'skep.state': 'other' }),
          ...['used', 'named', 'joined'].map((one) => ahead(one)),
        ],
      },
      'GET /images/json': { body: [] },
      'DELETE /containers/left': { status: 204 },
      'DELETE /networks/n2': { status: 204 },
      'DELETE /containers/h-ahead': { status: 204 },
      'DELETE /networks/ahead': { status: 204 },
      'DELETE /containers/h-gone': { status: 204 },
    });
    await engine.runtime.sweep();
    expect(engine.calls().filter((call) => call.startsWith('DELETE'))).toEqual([
      'DELETE /containers/left',
      'DELETE /networks/n2',
      'DELETE /containers/h-ahead',
      'DELETE /networks/ahead',
      'DELETE /containers/h-gone',
    ]);
  });
});
