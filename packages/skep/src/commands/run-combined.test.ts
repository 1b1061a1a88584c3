import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openCommandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import type { WorkloadSpec } from '../runtime/runtime.ts';
import { catalogueOf, imagePackage } from './catalogue.fixture.ts';

const overHttp = imagePackage({ transport: { type: 'streamable-http', url: 'http://localhost:3000/mcp' } });
const CATALOGUE = catalogueOf({
  'com.example/open': {
    packages: [overHttp],
    extension: { permissions: { network: { outbound: { insecure_allow_all: true } } } },
  },
});
const FILES = {
  'both.json': { read: ['./notes:/notes'], write: ['./notes:/notes'], network: {} },
  'reads.json': { read: ['./notes:/notes'] },
  'mine.json': { network: { mode: 'mine' } },
  'notes/a': '',
  'other/b': '',
};

interface Came {
  /** What its runtime is asked for. */
  readonly spec?: Partial<WorkloadSpec> | { readonly [Key in keyof WorkloadSpec]?: unknown };
  /** What is saved. */
  readonly saved?: object;
  /** What the person is told. */
  readonly told?: string;
  readonly untold?: string;
}

let skep: CommandUnderTest;
beforeAll(async () => {
  skep = await openCommandUnderTest({ catalogue: CATALOGUE, files: FILES });
});
afterAll(() => skep.close());
afterEach(() => skep.run('rm a1'));

/** What becomes of settings that have a say in the same thing. */
describe('flags that meet', () => {
  test.each<readonly [line: string, came: Came]>([
    // Networks.
    ['fake:1 --network none', { spec: { network: 'none' } }],
    [
      'fake:1 --network none --isolate-network',
      { spec: { network: 'bridge', isolation: expect.objectContaining({ allowAll: false, hosts: [] }) } },
    ],
    [
      'fake:1 --network bridge --isolate-network',
      { spec: { network: 'bridge', isolation: expect.anything() } },
    ],
    [
      'fake:1 --network host',
      { spec: { network: 'host' }, saved: { permission_profile: { network: { mode: 'host' } } } },
    ],
    ['fake:1 --permission-profile ./mine.json', { spec: { network: 'mine' } }],
    ['fake:1 --permission-profile ./mine.json --network host', { spec: { network: 'host' } }],
    ['fake:1 --permission-profile none --network mine', { spec: { network: 'mine' } }],
    ['fake:1 --permission-profile none', { spec: { network: 'none' } }],
    ['fake:1 --permission-profile stdio', { spec: { network: 'none' } }],
    [
      'fake:1 --allow-runtime-gateway',
      { told: 'Warning: --allow-runtime-gateway has no effect without --isolate-network\n' },
    ],
    [
      'fake:1 --allow-runtime-gateway --isolate-network',
      {
        untold: '--allow-runtime-gateway',
        spec: { isolation: expect.objectContaining({ runtimeGateway: true }) },
      },
    ],
    // Transports and ports.
    ['open', { saved: { transport: 'streamable-http', target_port: 3000 } }],
    ['open --target-port 4000', { saved: { target_port: 4000 } }],
    ['open --transport stdio', { spec: { stdio: true, ports: [] }, saved: { transport: 'stdio' } }],
    [
      'fake:1 --transport stdio --target-port 3000 --target-host db.example',
      { spec: { ports: [], env: { MCP_TRANSPORT: 'stdio' } } },
    ],
    [
      'fake:1 --transport streamable-http --target-port 3000 --proxy-mode streamable-http',
      { saved: { proxy_mode: 'streamable-http' } },
    ],
    [
      'fake:1 --transport streamable-http --target-port 3000 -p 8300:3000',
      {
        spec: {
          ports: [
            expect.objectContaining({ hostIp: '127.0.0.1', containerPort: 3000 }),
            { hostIp: '127.0.0.1', hostPort: 8300, containerPort: 3000 },
          ],
        },
      },
    ],
    [
      'fake:1 -p 8301:80 --host 127.0.0.2',
      { spec: { ports: [{ hostIp: '127.0.0.2', hostPort: 8301, containerPort: 80 }] } },
    ],
    ['fake:1 --host localhost', { saved: { host: '127.0.0.1' } }],
    ['fake:1 --host [0::1]', { saved: { host: '::1' } }],
    ['fake:1 -p 80', { spec: { ports: [{ hostIp: '127.0.0.1', hostPort: 0, containerPort: 80 }] } }],
    // Variables: what Skep decides is nobody else's.
    [
      'fake:1 -e MCP_TRANSPORT=x -e A= -e B=c=d',
      { spec: { env: { A: '', B: 'c=d', MCP_TRANSPORT: 'stdio' } } },
    ],
    [
      'fake:1 --transport streamable-http --target-port 3000 -e MCP_PORT=1 -e FASTMCP_PORT=2',
      {
        spec: {
          env: {
            MCP_TRANSPORT: 'streamable-http',
            MCP_PORT: '3000',
            FASTMCP_PORT: '3000',
            MCP_HOST: '0.0.0.0',
          },
        },
      },
    ],
    // Mounts.
    [
      'fake:1 --permission-profile ./both.json',
      { spec: { mounts: [expect.objectContaining({ target: '/notes', readOnly: false })] } },
    ],
    [
      'fake:1 -l teams.example.com/owner=core',
      { spec: { labels: expect.objectContaining({ 'teams.example.com/owner': 'core' }) } },
    ],
    ['fake:1 -l a=b -l c=', { spec: { labels: expect.objectContaining({ a: 'b', c: '' }) } }],
    // Origins.
    ['fake:1', { told: 'Warning: where the image "fake:1" comes from is not verified' }],
    ['fake:1 --image-verification disabled', { untold: 'verified' }],
    ['npx://fake', { untold: 'verified' }],
    // Builds.
    ['fake:1 --runtime-image node:24', { told: 'Warning: --runtime-image has no effect on an image\n' }],
    [
      'fake:1 --runtime-add-package git --build-with x',
      { told: 'Warning: --runtime-add-package, --build-with have no effect on an image\n' },
    ],
  ])('run %s', async (line, { spec, saved, told, untold }) => {
    const { status, err } = await skep.run(`run ${line} --name a1`);
    expect({ status, err }).toMatchObject({ status: 0 });
    if (told !== undefined) expect(err).toContain(told);
    if (untold !== undefined) expect(err).not.toContain(untold);
    if (spec !== undefined) expect(skep.runtime.specOf('a1')).toMatchObject(spec);
    if (saved !== undefined) expect(JSON.parse(await skep.output('export a1 -'))).toMatchObject(saved);
  });

  test.each([
    ['fake:1 --permission-profile ./reads.json -v ./other:/notes', '"/notes"'],
    [
      'npx://fake --image-verification enabled',
      'provenance server information not set: no catalogue says who signs npx://fake',
    ],
    ['fake:1 --group absent', "group 'absent' does not exist"],
    [
      'fake:1 --permission-profile ./mine.json --isolate-network',
      'network isolation cannot be enforced on the network "mine"',
    ],
  ])('run %s is refused before anything is fetched', async (line, said) => {
    const before = skep.runtime.prepared.length;
    expect(await skep.refusal(`run ${line} --name a1`)).toContain(said);
    expect(skep.runtime.prepared).toHaveLength(before);
  });
});
