import { describe, expect, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { loadRunConfig } from '../run-config/file.ts';

const WAYS = ['up', 'asked'] as const;
const FILES = {
  'profile.json': { network: { outbound: { allow_host: ['api.example.com'], allow_port: [443] } } },
  'silent.json': { name: 'says nothing of a network' },
};

const policyOf = (skep: CommandUnderTest, name: string): unknown => skep.runtime.specOf(name)?.isolation;

describe.each(WAYS)('an isolated run (%s)', (supervisor) => {
  test('hands its runtime what the profile allows, and says it', async () => {
    const skep = await commandUnderTest({ supervisor, files: FILES });
    const { status, err } = await skep.run(
      'run fake:1 --name a1 --isolate-network --permission-profile ./profile.json',
    );
    expect(status).toBe(0);
    expect(err).toMatch(/^ +Network: +api\.example\.com:443; never 127\.0\.0\.1 here/m);
    expect(err).not.toMatch(/not enforced/i);
    expect(policyOf(skep, 'a1')).toEqual({
      workload: 'a1',
      allowAll: false,
      hosts: ['api.example.com'],
      ports: [443],
      inbound: [],
      runtimeGateway: false,
    });
    expect((await skep.runtime.inspect('a1'))?.labels).toMatchObject({ 'skep.network-isolation': 'true' });
    expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({
      permissions: { network: ['api.example.com:443'] },
    });
  });

  test.each([
    ['--isolate-network --permission-profile none', { allowAll: false, hosts: [], ports: [] }],
    ['--isolate-network --permission-profile ./silent.json', { allowAll: false, hosts: [], ports: [] }],
    ['--isolate-network --network none', { allowAll: false, hosts: [], ports: [] }],
    ['--isolate-network', { allowAll: true }],
    ['--isolate-network --allow-runtime-gateway', { allowAll: true, runtimeGateway: true }],
    ['--allow-runtime-gateway', undefined],
    ['--isolate-network=false', undefined],
  ])('with %s has the policy %j', async (flags, policy) => {
    const skep = await commandUnderTest({ supervisor, files: FILES });
    await skep.output(`run fake:1 --name a1 ${flags}`);
    if (policy === undefined) expect(policyOf(skep, 'a1')).toBeUndefined();
    else expect(policyOf(skep, 'a1')).toMatchObject(policy);
  });
});

test.each([
  ['', true],
  [' --isolate-network', false],
])('--allow-runtime-gateway%s is said to have no effect: %s', async (flag, isSaid) => {
  const skep = await commandUnderTest();
  const { err } = await skep.run(`run fake:1 --name a1 --allow-runtime-gateway${flag}`);
  expect(err.includes('Warning: --allow-runtime-gateway has no effect without --isolate-network\n')).toBe(
    isSaid,
  );
});

describe('skep config set isolation on', () => {
  test('isolates what is run from then on, unless the flag says otherwise', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output('run fake:1 --name before');
    await skep.output('config set isolation on');
    await skep.output('run fake:1 --name after');
    await skep.output('run fake:1 --name without --isolate-network=false');
    await skep.output('config set isolation off');
    await skep.output('run fake:1 --name with --isolate-network');
    await skep.output('run fake:1 --name last');
    const isolated = ['before', 'after', 'without', 'with', 'last'].filter((name) => policyOf(skep, name));
    expect(isolated).toEqual(['after', 'with']);
  });

  test('is named by --explain as what decided it', async () => {
    const skep = await commandUnderTest();
    await skep.output('config set isolation on');
    const said = await skep.output('run --explain fake:1');
    expect(said).toMatch(/^isolate_network +true +\S*config\.yaml +false \(default\)/m);
  });

  test('takes nothing but on and off', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal('config set isolation maybe')).toMatch(/^Error: invalid value "maybe"/);
    expect(await skep.output('config get isolation')).toBe('off\n');
  });

  test('isolates an import that says nothing; one that says no needs the word of a person', async () => {
    const skep = await commandUnderTest();
    await skep.output('config set isolation on');
    const plain = { image: 'fake:1', transport: 'stdio', port: 0 };
    await skep.write('silent.json', { ...plain, name: 'silent' });
    await skep.output('run --from-config silent.json');
    expect(policyOf(skep, 'silent')).toBeDefined();
    await skep.write('open.json', { ...plain, name: 'open', isolate_network: false });
    expect(await skep.refusal('run --from-config open.json')).toContain(
      'asks to run without the isolation that skep config set isolation on asks for, which is not granted',
    );
    await skep.output('run --from-config open.json --trust-config');
    expect(policyOf(skep, 'open')).toBeUndefined();
  });
});

test('isolation survives stop, start, export and import', async () => {
  const skep = await commandUnderTest({ files: FILES });
  await skep.output('run fake:1 --name a1 --isolate-network --permission-profile ./profile.json');
  const policy = policyOf(skep, 'a1');
  await skep.output('stop a1');
  await skep.output('start a1');
  expect(policyOf(skep, 'a1')).toEqual(policy);
  await skep.output('export a1 a1.json');
  await skep.output('rm a1');
  await skep.output('run --from-config a1.json --trust-config');
  expect(policyOf(skep, 'a1')).toEqual(policy);
  expect(await loadRunConfig(skep.places, 'a1')).toMatchObject({ isolate_network: true });
});

test('an isolated server without any connection is reached over HTTP, which one without a network is not', async () => {
  const skep = await commandUnderTest();
  const http =
    'run fake:1 --name a1 --transport streamable-http --target-port 80 --no-check --permission-profile none';
  expect(await skep.refusal(http)).toContain('add --isolate-network');
  await skep.output(`${http} --isolate-network`);
  expect(skep.runtime.specOf('a1')).toMatchObject({
    network: 'bridge',
    isolation: { allowAll: false, hosts: [], ports: [] },
    ports: [{ hostIp: '127.0.0.1', containerPort: 80 }],
  });
});
