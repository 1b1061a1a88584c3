import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { engine, ensureNodeBase, ensureTinyImage, NODE_BASE } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, openUser, type TestUser } from './skep.ts';

const engineThere = await component('engine');
const sandboxThere = await component('sandbox');

const PACKAGE = 'skep-test-again';
const SCRIPT = readFileSync(path.join(import.meta.dirname, 'fixtures/probe-server.mjs'), 'utf8');

let user: TestUser;
/** Names on a shared engine must not meet those of another test run. */
let name: string;
let registry: Awaited<ReturnType<typeof npmRegistryWith>>;

function docker(...args: string[]): string {
  return execFileSync('docker', ['-H', `unix://${engineSocket()}`, ...args], { encoding: 'utf8' });
}

/** An address of this machine that containers reach: the engine's own end of its bridge, the first of its subnet. */
async function bridgeAddress(): Promise<string> {
  const { text } = await engine('GET', '/networks/bridge');
  const { IPAM } = JSON.parse(text) as { IPAM: { Config: { Gateway?: string; Subnet: string }[] } };
  const [config] = IPAM.Config;
  return config?.Gateway ?? config?.Subnet.replace(/\.0\/\d+$/, '.1') ?? '';
}

async function ran(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await user.skep(['run', ...args]);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}

const saved = (): { image: string } =>
  JSON.parse(readFileSync(path.join(user.dir, `state/skep/runconfigs/${name}.json`), 'utf8')) as {
    image: string;
  };

describe.skipIf(!engineThere.available)(title('a workload on an engine', engineThere), () => {
  beforeEach(async () => {
    name = `again-${randomBytes(3).toString('hex')}`;
    registry = await npmRegistryWith(PACKAGE, SCRIPT, { host: await bridgeAddress() });
    user = openUser({ SKEP_RUNTIME: 'docker', npm_config_registry: registry.url });
    await ensureNodeBase();
  });
  afterEach(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
    expect(docker('ps', '-aq', '--filter', `name=${name}`)).toBe('');
  });

  test('whose image was pruned is built again by start, from the same base, with progress', async () => {
    const url = await ran(`npx://${PACKAGE}`, '--name', name, '--runtime-image', NODE_BASE);
    expect((await user.skep(['stop', name])).code).toBe(0);
    docker('rm', name);
    docker('rmi', saved().image);
    const started = await user.skep(['start', name]);
    expect(started).toMatchObject({ code: 0, stderr: expect.stringContaining(PACKAGE) });
    expect(await ask(url, 'probe/args')).toMatchObject({ result: [] });
  });

  test('exported, removed and imported is built from the base image it was given', async () => {
    const url = await ran(`npx://${PACKAGE}`, '--name', name, '--runtime-image', NODE_BASE);
    const before = saved();
    const file = path.join(user.dir, 'export.json');
    expect((await user.skep(['export', name, file])).code).toBe(0);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      runtime_config: { builder_image: NODE_BASE },
    });
    expect((await user.skep(['rm', name])).code).toBe(0);
    expect((await user.skep(['run', '--from-config', file])).stdout).toBe(`${url}\n`);
    expect(saved()).toEqual(before);
  });

  test('whose image is gone for good cannot start, stays stopped, and can when the image is back', async () => {
    const image = await ensureTinyImage(TINY_SERVER);
    // An address where nothing listens, so that pulling fails at once.
    const own = `127.0.0.1:9/${name}:1`;
    docker('tag', image, own);
    const url = await ran(own, '--name', name);
    expect((await user.skep(['stop', name])).code).toBe(0);
    docker('rm', name);
    docker('rmi', own);
    const refused = await user.skep(['start', name]);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`image not found in registry: "${own}"`),
    });
    expect((await user.skep(['status', name])).stdout).toContain('stopped');
    docker('tag', await ensureTinyImage(TINY_SERVER), own);
    expect((await user.skep(['start', name])).code).toBe(0);
    expect(await ask(url, 'ping')).toMatchObject({ result: {} });
    await user.skep(['rm', name]);
    docker('rmi', own);
  });

  test('mounts no directory while the ignore file names something, unless it is told to', async () => {
    const image = await ensureTinyImage(TINY_SERVER);
    mkdirSync(path.join(user.dir, 'config/skep'), { recursive: true });
    writeFileSync(path.join(user.dir, 'config/skep/skepignore'), '.env\n');
    const mount = ['-v', `${user.dir}:/data:ro`];
    const refused = await user.skep(['run', image, '--name', name, ...mount]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('skepignore');
    expect(refused.stderr).toContain('--ignore-globally=false');
    expect(docker('ps', '-aq', '--filter', `name=${name}`)).toBe('');
    await ran(image, '--name', name, ...mount, '--ignore-globally=false');
    await user.skep(['stop', name]);
    expect((await user.skep(['start', name])).code).toBe(0);
  });
});

describe.skipIf(!sandboxThere.available)(title('a workload in the sandbox', sandboxThere), () => {
  beforeEach(async () => {
    name = `again-${randomBytes(3).toString('hex')}`;
    registry = await npmRegistryWith(PACKAGE, SCRIPT);
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
  });
  afterEach(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
  });

  test('whose package was pruned is fetched again by start, with progress', async () => {
    const url = await ran(`npx://${PACKAGE}`, '--name', name);
    expect((await user.skep(['stop', name])).code).toBe(0);
    const packages = path.join(user.dir, 'cache/skep/packages');
    expect(readdirSync(packages)).toEqual([saved().image]);
    rmSync(packages, { recursive: true });
    const started = await user.skep(['start', name]);
    expect(started).toMatchObject({ code: 0, stderr: expect.stringContaining(`Fetching ${PACKAGE}`) });
    expect(await ask(url, 'probe/args')).toMatchObject({ result: [] });
  });

  test('whose package is gone for good cannot start and stays stopped', async () => {
    await ran(`npx://${PACKAGE}`, '--name', name);
    expect((await user.skep(['stop', name])).code).toBe(0);
    rmSync(path.join(user.dir, 'cache/skep/packages'), { recursive: true });
    const env = {
      npm_config_registry: 'http://127.0.0.1:9/',
      npm_config_cache: path.join(user.dir, 'other'),
    };
    const refused = await user.skep(['start', name], { env });
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(PACKAGE) });
    expect((await user.skep(['status', name])).stdout).toContain('stopped');
  });
});
