import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { bridgeAddress } from './fixtures/bridge-address.ts';
import { Container, docker, RESTRICTED } from './fixtures/container.ts';
import { freePort } from './fixtures/free-port.ts';
import { ensureNodeBase } from './images.ts';
import { Cluster } from './postgres/cluster.ts';
import { debianPostgres } from './postgres/binaries.ts';
import { component, repoRoot, title } from './require.ts';
import { ask } from './skep.ts';

// The images of deploy/Dockerfile, built from the packed programs and run as a cluster runs them.

const engine = await component('engine');
const postgres = await component('postgres-debian');

const PREFIX = 'skep-test/deployed-';
const TAG = 'e2e';
const IMAGES = { registry: `${PREFIX}skep-registry:${TAG}`, proxy: `${PREFIX}skep:${TAG}` };
/** Of a Kubernetes pod, where nothing else is said. */
const GRACE_SECONDS = 30;

let folder: string;
const started: Container[] = [];

async function run(...args: Parameters<typeof Container.run>): Promise<Container> {
  const container = await Container.run(...args);
  started.push(container);
  return container;
}

/** Asks until the answer has that status; what does not answer at all is asked again too. */
async function until(url: string, status: number): Promise<string> {
  let text = '';
  await vi.waitUntil(
    async () => {
      const response = await fetch(url).catch(() => undefined);
      text = (await response?.text()) ?? '';
      return response?.status === status;
    },
    { timeout: 30_000, interval: 50 },
  );
  return text;
}

beforeAll(async () => {
  if (!engine.available) return;
  folder = await mkdtemp(path.join(os.tmpdir(), 'skep-deployed-'));
  await chmod(folder, 0o755);
  const packed = process.env['SKEP_TEST_BUNDLE'] ?? path.join(repoRoot, 'dist');
  const args = ['--base', await ensureNodeBase(), '--prefix', PREFIX, '--tag', TAG, '--packed', packed];
  await promisify(execFile)(process.execPath, [path.join(repoRoot, 'scripts/images.ts'), ...args], {
    env: { ...process.env, DOCKER_BUILDKIT: '0' },
  });
});
afterEach(async () => {
  for (const container of started.splice(0)) await container.remove();
});
afterAll(async () => {
  if (!engine.available) return;
  await docker('rmi', '--force', ...Object.values(IMAGES));
  await rm(folder, { recursive: true, force: true });
});

/** Path, owner and mode of everything in an image, directories left out. */
async function filesOf(image: string): Promise<ReadonlyMap<string, string>> {
  const id = await docker('create', image, 'version');
  try {
    const { stdout } = await promisify(execFile)(
      'sh',
      ['-c', 'docker -H "$0" export "$1" | tar -tv --numeric-owner', dockerHost(), id],
      { maxBuffer: 64 * 1024 ** 2 },
    );
    const lines = stdout.split('\n').filter((line) => /^[^d]/.test(line));
    return new Map(lines.map((line) => [line.replace(/^(?:\S+\s+){5}/, ''), line]));
  } finally {
    await docker('rm', id);
  }
}

const dockerHost = (): string => process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock';

describe.skipIf(!engine.available)(title('an image of a program', engine), () => {
  test.each([
    ['skep-registry', IMAGES.registry],
    ['skep', IMAGES.proxy],
  ])('of %s adds the packed program to its base and nothing else', async (program, image) => {
    const base = await filesOf(await ensureNodeBase());
    const added = [...(await filesOf(image))].filter(([file]) => !base.has(file));
    const packed = path.join(process.env['SKEP_TEST_BUNDLE'] ?? path.join(repoRoot, 'dist'), program);
    const expected = readdirSync(packed, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join('opt', program, path.relative(packed, entry.parentPath), entry.name));
    expect(added.map(([file]) => file).toSorted()).toEqual(expected.toSorted());
    expect(expected).toContain(`opt/${program}/LICENSE`);
    expect(expected).toContain(`opt/${program}/THIRD-PARTY-LICENSES.txt`);
    // Nobody but root may change them.
    expect(added.filter(([, line]) => !/^-r..r-.r-. +0\/0 /.test(line))).toEqual([]);
  });

  test.each([
    ['skep-registry', IMAGES.registry],
    ['skep', IMAGES.proxy],
  ])('of %s says what it is, and is no root', async (program, image) => {
    const { Config } = JSON.parse(await docker('image', 'inspect', '--format={{json .}}', image)) as {
      readonly Config: Readonly<Record<string, unknown>> & { readonly Labels: Record<string, string> };
    };
    expect(Config).toMatchObject({ User: '65532:65532', StopSignal: 'SIGTERM' });
    expect(Config['Entrypoint']).toEqual(['node', '--', `/opt/${program}/${program}.js`]);
    expect(Config.Labels).toMatchObject({
      'org.opencontainers.image.title': program,
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
      'org.opencontainers.image.revision': expect.stringMatching(/^[0-9a-f]{40}$/),
      'org.opencontainers.image.created': expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    const said = await docker('run', '--rm', ...RESTRICTED, '--network=none', image, 'version');
    expect(said).toContain(`${program} ${Config.Labels['org.opencontainers.image.version']}`);
  });
});

describe.skipIf(!engine.available || !postgres.available)(
  title('replicas of the registry in containers', engine, postgres),
  () => {
    let cluster: Cluster;
    let flags: readonly string[];

    beforeAll(async () => {
      const host = await bridgeAddress();
      cluster = await Cluster.start({
        bin: debianPostgres,
        settings: [`listen_addresses=127.0.0.1,${host}`],
        files: {
          'pg_hba.conf': 'host all postgres 127.0.0.1/32 trust\nhost all all 0.0.0.0/0 scram-sha-256\n',
        },
      });
      await cluster.query('postgres', `create role migrator login password 'of-the-job'`);
      await cluster.query('postgres', `create role app login password 'of-the-pods'`);
      await cluster.query('postgres', `create role skep_registry`);
      await cluster.query('postgres', `grant skep_registry to app`);
      await cluster.query('postgres', `create database catalogue owner migrator`);
      const config = path.join(folder, 'etc');
      await mkdir(config, { mode: 0o755 });
      // JSON is YAML.
      const text = JSON.stringify({
        sources: [{ name: 'ours', managed: {} }],
        registries: [{ name: 'all', sources: ['ours'] }],
        auth: { mode: 'anonymous' },
        database: { host, port: cluster.port, database: 'catalogue', user: 'app', sslMode: 'disable' },
      });
      await writeFile(path.join(config, 'registry.yaml'), text, { mode: 0o644 });
      flags = [...RESTRICTED, `--volume=${config}:/etc/skep-registry:ro`];
    });
    afterAll(() => cluster.stop());

    const serve = (): Promise<Container> =>
      run(
        IMAGES.registry,
        [
          ...flags,
          '--env=SKEP_REGISTRY_DATABASE_PASSWORD=of-the-pods',
          '-p127.0.0.1::8080',
          '-p127.0.0.1::8081',
        ],
        ['serve', '--config=/etc/skep-registry/registry.yaml', '--address=:8080', '--internal-address=:8081'],
      );

    const publish = async (to: Container, name: string): Promise<number> => {
      const { status } = await fetch(`${await to.address(8080)}/registry/all/v0.1/publish`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name, version: '1.0.0', url: 'https://x.example/mcp', description: 'x' }),
      });
      return status;
    };

    const names = async (of: Container): Promise<readonly string[]> => {
      const response = await fetch(`${await of.address(8080)}/registry/all/v0.1/servers`);
      const { servers } = (await response.json()) as { servers: { server: { name: string } }[] };
      return servers.map(({ server }) => server.name);
    };

    test('a job migrates with rights of its own, pods serve without them, one is killed, and all stop in time', async () => {
      const early = await run(
        IMAGES.registry,
        [...flags, '--env=SKEP_REGISTRY_DATABASE_PASSWORD=of-the-pods', '--network=bridge'],
        ['serve', '--config=/etc/skep-registry/registry.yaml'],
      );
      expect(await docker('wait', early.name)).not.toBe('0');
      expect(await early.said()).toMatch(/permission denied/);

      const job = await run(
        IMAGES.registry,
        [
          ...flags,
          '--env=SKEP_REGISTRY_DATABASE_MIGRATIONUSER=migrator',
          '--env=SKEP_REGISTRY_DATABASE_MIGRATIONPASSWORD=of-the-job',
        ],
        ['migrate', 'up', '--yes', '--config=/etc/skep-registry/registry.yaml'],
      );
      expect([await docker('wait', job.name), await job.said()]).toEqual([
        '0',
        expect.stringMatching(/Schema is now \d+/),
      ]);

      const [one, two] = [await serve(), await serve()];
      for (const pod of [one, two]) {
        await until(`${await pod.address(8081)}/readiness`, 200);
        await until(`${await pod.address(8081)}/health`, 200);
      }
      expect(await publish(one, 'io.acme/first')).toBe(201);
      await expect.poll(() => names(two), { timeout: 5_000 }).toEqual(['io.acme/first']);

      await one.kill();
      expect(await names(two)).toEqual(['io.acme/first']);
      expect(await publish(two, 'io.acme/second')).toBe(201);
      await one.start();
      await until(`${await one.address(8081)}/readiness`, 200);
      expect(await names(one)).toEqual(['io.acme/first', 'io.acme/second']);

      for (const pod of [one, two]) {
        const { code, ms } = await pod.stop(GRACE_SECONDS);
        expect(code, await pod.said()).toBe(0);
        expect(ms).toBeLessThan(GRACE_SECONDS * 1_000);
      }
    });
  },
);

describe.skipIf(!engine.available)(title('a proxy in a container', engine), () => {
  let server: ChildProcess;
  let url: string;
  beforeAll(async () => {
    const [host, port] = [await bridgeAddress(), String(await freePort())];
    const env = { ...process.env, MCP_TRANSPORT: 'streamable-http', MCP_HOST: host, MCP_PORT: port };
    const program = path.join(repoRoot, 'e2e/fixtures/tools-server.ts');
    server = spawn(process.execPath, [program], { env, stdio: 'ignore' });
    url = `http://${host}:${port}/mcp`;
    await until(url, 406);
  });
  afterAll(async () => {
    const ended = once(server, 'exit');
    server.kill();
    await ended;
  });

  test('serves a server elsewhere, and ends when it is told', async () => {
    const config = {
      schema_version: 'v0.1.0',
      name: 'far',
      remote_url: url,
      transport: 'streamable-http',
      host: '0.0.0.0',
      port: 8080,
      allowed_origins: ['http://far.tools.svc:8080'],
    };
    const file = path.join(folder, 'far.json');
    await writeFile(file, JSON.stringify(config), { mode: 0o644 });
    const state = path.join(folder, 'state');
    await mkdir(state);
    // As an emptyDir, which outlives the process but not the pod.
    await chmod(state, 0o777);
    const pod = await run(
      IMAGES.proxy,
      [
        ...RESTRICTED,
        '-p127.0.0.1::8080',
        `--volume=${file}:/etc/skep/far.json:ro`,
        `--volume=${state}:/var/lib/skep`,
      ],
      ['run', '--from-config=/etc/skep/far.json', '--trust-config', '--foreground'],
    );
    const address = await pod.address(8080);
    await until(`${address}/health`, 200);
    expect(await ask(`${address}/mcp`, 'tools/call', { name: 'read', arguments: {} })).toMatchObject({
      result: { content: [{ text: '{"name":"read","given":{}}' }] },
    });
    const isRunning = (times: number): Promise<unknown> =>
      vi.waitUntil(async () => (await pod.said()).split('far is running').length > times, {
        timeout: 60_000,
        interval: 50,
      });
    await isRunning(1);
    // The kubelet starts a container again with the volumes of its pod.
    await pod.kill();
    await pod.start();
    const again = await pod.address(8080);
    await until(`${again}/health`, 200);
    expect(await ask(`${again}/mcp`, 'tools/list')).toMatchObject({ result: { tools: expect.anything() } });
    await isRunning(2);
    const { code } = await pod.stop(GRACE_SECONDS);
    expect(code, await pod.said()).toBe(0);
  });
});
