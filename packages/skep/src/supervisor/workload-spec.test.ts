import { describe, expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import type { WorkloadSpec } from '../runtime/runtime.ts';
import { networkOf, SPEC_LABEL, toWorkloadSpec, usesHostNetwork, type SpecOptions } from './workload-spec.ts';

type Kind = SpecOptions['runtime'];
const DOCKER: Kind = { reachesLoopback: false, keepsSecrets: true };
const SANDBOX: Kind = { reachesLoopback: true, keepsSecrets: false };

interface Given {
  readonly runtime?: Kind;
  readonly hostPort?: number;
}

function specOf(more: object, { runtime = DOCKER, ...options }: Given = {}): WorkloadSpec {
  const config = { name: 'a1', image: 'fake:1', transport: 'stdio', port: 4001, ...more };
  return toWorkloadSpec(decodeRunConfig(config, 'test'), { owner: 'me', runtime, ...options });
}
const HTTP = { transport: 'streamable-http', target_port: 8080 };
const network = (mode: string): object => ({ permission_profile: { network: { mode } } });

describe('variables that tell a server how it is spoken to', () => {
  test('are its transport alone over standard input', () => {
    expect(specOf({ env_vars: { A: 'b' } }).env).toEqual({ A: 'b', MCP_TRANSPORT: 'stdio' });
  });

  test.each<[string, object, Given, string]>([
    ['every address of a container of its own', HTTP, {}, '0.0.0.0'],
    ['loopback in a sandbox, where the proxy is', HTTP, { runtime: SANDBOX }, '127.0.0.1'],
    ['loopback where the network is the machine’s', { ...HTTP, ...network('host') }, {}, '127.0.0.1'],
    ['what the person named there', { ...HTTP, ...network('host'), target_host: '10.0.0.5' }, {}, '10.0.0.5'],
  ])('are over HTTP port and address: %s', (_, config, given, address) => {
    expect(specOf(config, given).env).toEqual({
      MCP_TRANSPORT: 'streamable-http',
      MCP_PORT: '8080',
      FASTMCP_PORT: '8080',
      MCP_HOST: address,
    });
  });

  test('cannot be set by the person, whom the server would believe', () => {
    const env_vars = { MCP_TRANSPORT: 'x', MCP_PORT: '1', FASTMCP_PORT: '1', MCP_HOST: 'x' };
    expect(specOf({ ...HTTP, env_vars }).env).toMatchObject({
      MCP_TRANSPORT: 'streamable-http',
      MCP_PORT: '8080',
    });
  });
});

describe('ports', () => {
  test('of the server itself are open to the proxy alone', () => {
    expect(specOf({ ...HTTP, host: '0.0.0.0' }, { hostPort: 20_001 }).ports).toEqual([
      { hostIp: '127.0.0.1', hostPort: 20_001, containerPort: 8080 },
    ]);
  });

  test.each([
    ['8081:81', { hostPort: 8081, containerPort: 81 }],
    ['81', { hostPort: 0, containerPort: 81 }],
  ])('that are published as %s are on the address of the proxy', (text, ports) => {
    expect(specOf({ publish: [text], host: '0.0.0.0' }).ports).toEqual([{ hostIp: '0.0.0.0', ...ports }]);
  });

  test('that are published never stand in for the server’s own', () => {
    const { ports } = specOf({ ...HTTP, publish: ['8080:8080'] }, { hostPort: 20_001 });
    expect(ports[0]).toEqual({ hostIp: '127.0.0.1', hostPort: 20_001, containerPort: 8080 });
    expect(ports).toHaveLength(2);
  });
});

test.each([
  [{}, 'bridge'],
  [network(''), 'bridge'],
  [network('default'), 'bridge'],
  [network('bridge'), 'bridge'],
  [network('none'), 'none'],
  [network('host'), 'host'],
  [network('mine'), 'mine'],
])('the network of %j is %s', (config, mode) => {
  expect(specOf(config).network).toBe(mode);
});

test.each<[string, boolean]>([
  ['host', true],
  ['bridge', false],
  ['none', false],
  ['mine', false],
])('on network %s the ports are those of the machine: %s', (mode, shared) => {
  const config = decodeRunConfig(
    { name: 'a1', image: 'x:1', transport: 'stdio', port: 1, ...network(mode) },
    'test',
  );
  expect(networkOf(config)).toBe(mode);
  expect(usesHostNetwork(config)).toBe(shared);
});

describe('an isolated workload', () => {
  const isolate_network = true;
  test('is handed what its gateway lets through, and has no network beside it', () => {
    const outbound = { allow_host: ['API.example.com'], allow_port: [443] };
    for (const mode of ['', 'none', 'host', 'mine']) {
      const spec = specOf({ isolate_network, permission_profile: { network: { mode, outbound } } });
      expect(spec.network).toBe('bridge');
      expect(spec.isolation).toMatchObject(
        mode === 'none' ? { hosts: [], ports: [] } : { hosts: ['api.example.com'], ports: [443] },
      );
      expect(spec.labels).toMatchObject({ 'skep.network-isolation': 'true' });
    }
    expect(specOf({}).labels).toMatchObject({ 'skep.network-isolation': 'false' });
    expect(specOf({})).not.toHaveProperty('isolation');
  });
  test('has ports of its own where others share those of the machine', () => {
    const config = { name: 'a1', image: 'x:1', transport: 'stdio', port: 1, isolate_network };
    expect(usesHostNetwork(decodeRunConfig(config, 'test'))).toBe(false);
  });
});

describe('labels', () => {
  test('say whose a workload is, whatever a configuration says', () => {
    const container_labels = { team: 'core' };
    const { labels } = specOf({ container_labels });
    expect(labels).toMatchObject({
      team: 'core',
      'skep.managed': 'true',
      'skep.name': 'a1',
      'skep.state': 'me',
      'skep.transport': 'stdio',
      'skep.port': '4001',
    });
  });

  test.each([
    [{}, { transport: 'stdio', port: '4001', 'network-isolation': 'false' }],
    [HTTP, { transport: 'streamable-http', port: '4001', 'network-isolation': 'false' }],
    [
      { ...HTTP, transport: 'sse', port: 5000 },
      { transport: 'sse', port: '5000' },
    ],
    [{ isolate_network: true }, { 'network-isolation': 'true' }],
    [{ container_labels: { 'skep.name': 'x', 'skep.managed': 'false', 'skep.state': 'other' } }, {}],
  ])('state facts about the workload of %j', (config, facts) => {
    const all = { managed: 'true', name: 'a1', basename: 'a1', state: 'me', ...facts };
    expect(specOf(config).labels).toMatchObject(
      Object.fromEntries(Object.entries(all).map(([name, value]) => [`skep.${name}`, value])),
    );
  });

  test('change with everything that a container is made from, and with nothing else', () => {
    const plain = specOf({}).labels[SPEC_LABEL];
    for (const more of [
      { image: 'fake:2' },
      { cmd_args: ['x'] },
      { env_vars: { A: 'b' } },
      { publish: ['80'] },
      network('none'),
      { permission_profile: { read: ['/tmp:/x'] } },
      { permission_profile: { privileged: true } },
      { sandbox_user: 'root' },
      { isolate_network: true },
    ]) {
      expect(specOf(more).labels[SPEC_LABEL]).not.toBe(plain);
    }
    for (const more of [{ port: 4002 }, { debug: true }, { group: 'default' }, { no_check: true }]) {
      expect(specOf(more).labels[SPEC_LABEL]).toBe(plain);
    }
  });
});

test('nobody becomes more than the profile says', () => {
  expect(specOf({}).privileged).toBe(false);
  expect(specOf({})).not.toHaveProperty('user');
  expect(specOf({ permission_profile: { privileged: true }, sandbox_user: '1000:1000' })).toMatchObject({
    privileged: true,
    user: '1000:1000',
  });
});
