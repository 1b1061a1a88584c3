import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bridgeAddress } from './fixtures/bridge-address.ts';
import { npmRegistryOf, npmRegistryWith, programPackage } from './fixtures/npm-registry.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureNodeBase, ensureScriptImage, ensureTinyImage, NODE_BASE } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, openUser, USERS, type TestUser } from './skep.ts';

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

async function ran(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await user.skep(['run', ...args]);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}

/** Over stop and start, the death of the supervisor, and until it is removed. */
async function keepsState(...flags: string[]): Promise<void> {
  const url = await ran(`npx://${PACKAGE}`, '--name', name, ...flags);
  const here = (await ask(url, 'probe/here')).result as unknown as string;
  const home = (await ask(url, 'probe/env', { name: 'HOME' })).result as unknown as string;
  const files = [`${here}/memory.jsonl`, `${home}/notes`];
  const read = () =>
    Promise.all(files.map(async (one) => (await ask(url, 'probe/read', { path: one })).result));
  for (const one of files) {
    expect(await ask(url, 'probe/write', { path: one, text: 'kept' })).toMatchObject({ result: 'written' });
  }
  expect((await user.skep(['stop', name])).code).toBe(0);
  expect((await user.skep(['start', name])).stderr).not.toContain('Warning');
  expect(await read()).toEqual(['kept', 'kept']);
  for (const pid of user.supervisors()) process.kill(pid, 'SIGKILL');
  expect((await user.skep(['stop', name])).code).toBe(0);
  expect((await user.skep(['start', name])).code).toBe(0);
  expect(await read()).toEqual(['kept', 'kept']);
  expect((await user.skep(['rm', name])).code).toBe(0);
  expect(await ran(`npx://${PACKAGE}`, '--name', name, '--proxy-port', new URL(url).port, ...flags)).toBe(
    url,
  );
  expect(await read()).toEqual([undefined, undefined]);
}

/** At the next start too, and not where the person says otherwise. */
async function hides(...flags: string[]): Promise<void> {
  const folder = path.join(user.dir, 'project');
  mkdirSync(path.join(folder, 'deep'), { recursive: true });
  for (const one of ['.env', 'deep/.env', 'deep/plain']) writeFileSync(path.join(folder, one), one);
  mkdirSync(path.join(user.dir, 'config/skep'), { recursive: true });
  writeFileSync(path.join(user.dir, 'config/skep/skepignore'), '.env\n');
  const mount = ['-v', `${folder}:/data:ro`, '--print-resolved-overlays'];
  const run = await user.skep(['run', `npx://${PACKAGE}`, '--name', name, ...flags, ...mount]);
  expect(run.stderr).toContain(`Overlays of ${folder} (mounted at /data):`);
  const url = run.stdout.trim();
  const read = async (file: string) => (await ask(url, 'probe/read', { path: `/data/${file}` })).result;
  expect([await read('.env'), await read('deep/.env'), await read('deep/plain')]).toEqual([
    '',
    '',
    'deep/plain',
  ]);
  writeFileSync(path.join(folder, '.skepignore'), 'plain\n');
  expect((await user.skep(['stop', name])).code).toBe(0);
  expect(await user.skep(['start', name])).toMatchObject({ code: 0, stderr: expect.stringContaining('/data/deep/plain is') }); // prettier-ignore
  expect(await read('deep/plain')).toBe('');
  expect((await user.skep(['rm', name])).code).toBe(0);
  await ran(`npx://${PACKAGE}`, '--name', name, ...flags, ...mount, '--proxy-port', new URL(url).port, '--ignore-globally=false'); // prettier-ignore
  expect([await read('.env'), await read('deep/plain')]).toEqual(['.env', '']);
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
    // It may hold secrets of its environment.
    expect(statSync(file).mode & 0o777).toBe(0o600);
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

  test('hides from its server what ignore files name', () => hides('--runtime-image', NODE_BASE));

  test('keeps what its server wrote beside its code and in its home', () =>
    keepsState('--runtime-image', NODE_BASE));

  test('starts from the image that its tag means by now, and says which files are lost', async () => {
    const own = `skep-test/${name}:1`;
    docker('tag', await ensureScriptImage('skep-test/probe:1', SCRIPT), own);
    const url = await ran(own, '--name', name, '--read-only=false');
    await ask(url, 'probe/write', { path: '/kept', text: 'x' });
    await user.skep(['stop', name]);
    const again = await user.skep(['start', name]);
    expect(again).toMatchObject({ code: 0, stderr: expect.not.stringContaining('Warning') });
    expect(await ask(url, 'probe/read', { path: '/kept' })).toMatchObject({ result: 'x' });
    await user.skep(['stop', name]);
    docker('tag', await ensureScriptImage('skep-test/probe:2', `${SCRIPT}// another one`), own);
    const renewed = await user.skep(['start', name]);
    expect(renewed).toMatchObject({ code: 0, stderr: expect.stringContaining('written inside are gone') });
    const read = { path: '/server.mjs' };
    expect(await ask(url, 'probe/read', read)).toMatchObject({
      result: expect.stringContaining('another one'),
    });
    expect(await ask(url, 'probe/read', { path: '/kept' })).toMatchObject({ error: expect.anything() });
    await user.skep(['rm', name]);
    docker('rmi', own);
  });
});

describe.skipIf(!sandboxThere.available).each(USERS)(
  title('a workload in the sandbox of %s', sandboxThere),
  (_who, uid) => {
    beforeEach(async () => {
      name = `again-${randomBytes(3).toString('hex')}`;
      registry = await npmRegistryWith(PACKAGE, SCRIPT);
      user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url }, uid);
    });
    afterEach(async () => {
      await user.end();
      await registry[Symbol.asyncDispose]();
    });

    test('keeps what its server wrote beside its code and in its home', () => keepsState());

    test('hides from its server what ignore files name', () => hides());

    test('starts from what Node compiled of the package when it was fetched', async () => {
      const url = await ran(`npx://${PACKAGE}`, '--name', name);
      const compiled = path.join(user.dir, 'cache/skep/packages', saved().image, '.compiled');
      const [tag = ''] = readdirSync(compiled);
      const kept = readdirSync(path.join(compiled, tag));
      expect(kept).not.toEqual([]);
      const cache = '/skep/compiled';
      const list = { path: cache };
      const [seen = ''] = (await ask(url, 'probe/list', list)).result as unknown as string[];
      expect(seen.startsWith(tag)).toBe(true);
      const planted = await ask(url, 'probe/write', { path: `${cache}/${seen}/0badc0de`, text: 'x' });
      expect(planted.error).toMatchObject({ message: expect.stringContaining('EROFS') });
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

    test('whose package has another version by now says that it keeps what the earlier one wrote', async () => {
      const url = await ran(`npx://${PACKAGE}`, '--name', name);
      const here = (await ask(url, 'probe/here')).result as unknown as string;
      const planted = { path: `${here}/planted.cjs` };
      await ask(url, 'probe/write', { ...planted, text: 'x' });
      expect((await user.skep(['stop', name])).code).toBe(0);
      rmSync(path.join(user.dir, 'cache/skep/packages'), { recursive: true });
      await using newer = await npmRegistryOf([programPackage(PACKAGE, SCRIPT, { version: '1.1.0' })]);
      const started = await user.skep(['start', name], { env: { npm_config_registry: newer.url } });
      expect(started).toMatchObject({ code: 0, stderr: expect.stringContaining(`skep rm ${name}`) });
      expect(await ask(url, 'probe/read', planted)).toMatchObject({ result: 'x' });
      expect((await user.skep(['stop', name])).code).toBe(0);
      const again = await user.skep(['start', name], { env: { npm_config_registry: newer.url } });
      expect(again).toMatchObject({ code: 0, stderr: expect.not.stringContaining('Warning') });
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
  },
);
