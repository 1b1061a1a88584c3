import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ownerOf } from '@skep/cli/supervisor/owner.ts';
import { bridgeAddress } from './fixtures/bridge-address.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { ensureNodeBase, ensureScriptImage, NODE_BASE } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, openUser, signal, USERS, type TestUser } from './skep.ts';

// What servers keep outlives everything but `rm --data`.

const engineThere = await component('engine');
const sandboxThere = await component('sandbox');
const npmThere = await component('npm');

const PACKAGE = 'skep-test-keep';
const SCRIPT = readFileSync(path.join(import.meta.dirname, 'fixtures/probe-server.mjs'), 'utf8');

let user: TestUser;
/** Names on a shared engine must not meet those of another test run. */
let name: string;

beforeEach(() => {
  name = `keep-${randomBytes(3).toString('hex')}`;
});

const docker = (...args: string[]): string =>
  execFileSync('docker', ['-H', `unix://${engineSocket()}`, ...args], { encoding: 'utf8' }).trim();

async function ok(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await user.skep(args);
  expect(code, stderr).toBe(0);
  return `${stdout}${stderr}`;
}

async function urlOf(): Promise<string> {
  const [one] = JSON.parse((await user.skep(['list', '--all', '--format', 'json'])).stdout) as {
    url: string;
  }[];
  return one?.url ?? '';
}

const read = async (file: string): Promise<unknown> =>
  (await ask(await urlOf(), 'probe/read', { path: file })).result;

/** Writes a file and finds it again after everything that a workload can live through, until its data is removed. */
async function keeps(file: string, run: readonly string[], kill: () => Promise<void>): Promise<void> {
  await ok('run', ...run);
  expect(await ask(await urlOf(), 'probe/write', { path: file, text: 'kept' })).toMatchObject({
    result: 'written',
  });
  await ok('stop', name);
  await ok('start', name);
  expect(await read(file)).toBe('kept');
  await kill();
  await ok('start', name);
  expect(await read(file)).toBe('kept');
  expect(await ok('status', name)).toMatch(/^Data: +\S/m);
  expect(await ok('rm', name)).toContain(`skep rm --data ${name}`);
  expect(await ok('run', ...run)).toContain('finds what it kept');
  expect(await read(file)).toBe('kept');
  await ok('rm', '--data', name);
  expect(await ok('run', ...run)).not.toContain('finds what it kept');
  expect(await read(file)).toBeUndefined();
  await ok('rm', name);
  await ok('rm', '--all', '--data');
  expect(user.leftFiles()).toEqual([]);
}

/** Two servers find the same file in a volume that only one of them may write; it goes with the last one's data. */
async function shares(one: readonly string[], other: readonly string[]): Promise<void> {
  const [writer, reader] = [name, `${name}-too`];
  const urls = async (): Promise<Record<string, string>> => {
    const { stdout } = await user.skep(['list', '--all', '--format', 'json']);
    return Object.fromEntries(
      (JSON.parse(stdout) as { name: string; url: string }[]).map((seen) => [seen.name, seen.url]),
    );
  };
  const asked = async (who: string, method: string, params: object) =>
    ask((await urls())[who] ?? '', method, params);
  await ok('run', ...one, '--name', writer, '-v', 'volume://notes:/srv/notes');
  await ok('run', ...other, '--name', reader, '-v', 'volume://notes:/mnt/seen:ro');
  expect(await asked(writer, 'probe/write', { path: '/srv/notes/x', text: 'shared' })).toMatchObject({
    result: 'written',
  });
  const seen = { path: '/mnt/seen/x' };
  expect(await asked(reader, 'probe/read', seen)).toMatchObject({ result: 'shared' });
  expect(await asked(reader, 'probe/write', { ...seen, text: 'y' })).toMatchObject({
    error: { data: 'EROFS' },
  });
  expect(await ok('status', reader)).toMatch(/^Shares: +the volume notes as \/mnt\/seen, read-only$/m);
  await ok('rm', '--yes', writer);
  await ok('stop', reader);
  await ok('start', reader);
  expect(await asked(reader, 'probe/read', seen)).toMatchObject({ result: 'shared' });
  await ok('rm', '--all', '--data', '--yes');
  await ok('run', ...one, '--name', writer, '-v', 'volume://notes:/srv/notes');
  expect((await asked(writer, 'probe/read', { path: '/srv/notes/x' })) as object).toHaveProperty('error');
  await ok('rm', '--all', '--data', '--yes');
  expect(user.leftFiles()).toEqual([]);
}

describe.skipIf(!sandboxThere.available).each(USERS)(
  title('in the sandbox of %s', sandboxThere),
  (_who, uid) => {
    let registry: Awaited<ReturnType<typeof npmRegistryWith>>;
    beforeEach(async () => {
      registry = await npmRegistryWith(PACKAGE, SCRIPT);
      user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url }, uid);
    });
    afterEach(async () => {
      await user.end();
      await registry[Symbol.asyncDispose]();
    });

    test('a server keeps what it writes to /data, which is in its home too', async () => {
      const killAll = async (): Promise<void> => {
        const run = readFileSync(path.join(user.dir, `data/skep/sandbox/${name}/run.json`), 'utf8');
        const { init } = JSON.parse(run) as { init: { pid: number } };
        await user.killSupervisor();
        signal([init.pid], 'SIGKILL');
      };
      await keeps('/data/notes', [`npx://${PACKAGE}`, '--name', name], killAll);
      await ok('run', `npx://${PACKAGE}`, '--name', name);
      await ask(await urlOf(), 'probe/write', { path: '/home/skep/.local/share/x', text: 'same' });
      expect(await read('/data/x')).toBe('same');
    });

    test('servers share a volume, which goes with the last of them', async () => {
      await shares([`npx://${PACKAGE}`], [`npx://${PACKAGE}`]);
    });
  },
);

describe.skipIf(!sandboxThere.available || !npmThere.available)(
  title('the memory server of the catalogue', npmThere),
  () => {
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: 'sandbox' });
    });
    afterEach(() => user.end());

    test('remembers over stop and start, and over rm and run', async () => {
      const entities = [{ name: 'ann', entityType: 'person', observations: ['likes tea'] }];
      const call = async (tool: string, args: object): Promise<string> =>
        JSON.stringify(await ask(await urlOf(), 'tools/call', { name: tool, arguments: args }));
      await ok('run', 'memory', '--name', name);
      await call('create_entities', { entities });
      await ok('stop', name);
      await ok('start', name);
      expect(await call('read_graph', {})).toContain('likes tea');
      await ok('rm', name);
      await ok('run', 'memory', '--name', name);
      expect(await call('read_graph', {})).toContain('likes tea');
    });
  },
);

describe.skipIf(!sandboxThere.available || !npmThere.available)(
  title('an older memory server', npmThere),
  () => {
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: 'sandbox' });
    });
    afterEach(() => user.end());

    test('remembers over its upgrade, the death of everything, and the way back, at one address', async () => {
      const old = 'npx://@modelcontextprotocol/server-memory@2025.4.25';
      const graph = async (): Promise<string> =>
        JSON.stringify(await ask(await urlOf(), 'tools/call', { name: 'read_graph', arguments: {} }));
      await ok('run', old, '--name', name, '-e', 'MEMORY_FILE_PATH=/data/graph.jsonl');
      const url = await urlOf();
      const entities = [{ name: 'ann', entityType: 'person', observations: ['likes tea'] }];
      await ask(url, 'tools/call', { name: 'create_entities', arguments: { entities } });
      const said = await ok('upgrade', '--yes', name);
      expect(said).toContain(`${name}: ${old} → npx://@modelcontextprotocol/server-memory@`);
      expect(said).toContain('tools changed: ');
      expect(await graph()).toContain('likes tea');
      await user.killSupervisor();
      expect(await ok('upgrade', '--yes', name)).toContain('is up to date');
      expect(await graph()).toContain('likes tea');
      expect(await ok('upgrade', '--undo', name)).toContain(`is back at ${old}`);
      expect(await graph()).toContain('likes tea');
      expect(await urlOf()).toBe(url);
    });
  },
);

describe.skipIf(!engineThere.available)(title('on an engine', engineThere), () => {
  const killAll = async (): Promise<void> => {
    await user.killSupervisor();
    docker('kill', name);
  };
  afterEach(async () => {
    await user.end();
    expect(docker('volume', 'ls', '-q', '--filter', `label=skep.name=${name}`)).toBe('');
  });

  test('a package keeps what it writes to /data', async () => {
    await using registry = await npmRegistryWith(PACKAGE, SCRIPT, { host: await bridgeAddress() });
    user = openUser({ SKEP_RUNTIME: 'docker', npm_config_registry: registry.url });
    await ensureNodeBase();
    await keeps('/data/notes', [`npx://${PACKAGE}`, '--name', name, '--runtime-image', NODE_BASE], killAll);
  });

  test('a package and an image share a volume, which goes with the last of them', async () => {
    await using registry = await npmRegistryWith(PACKAGE, SCRIPT, { host: await bridgeAddress() });
    user = openUser({ SKEP_RUNTIME: 'docker', npm_config_registry: registry.url });
    await ensureNodeBase();
    const image = await ensureScriptImage('skep-test/probe:1', SCRIPT);
    await shares([`npx://${PACKAGE}`, '--runtime-image', NODE_BASE], [image]);
    const owner = ownerOf(path.join(user.dir, 'state/skep'));
    expect(docker('volume', 'ls', '-q', '--filter', `label=skep.state=${owner}`)).toBe('');
  });

  test('an image is upgraded to what its tag means now, back, and forward again', async () => {
    user = openUser({ SKEP_RUNTIME: 'docker' });
    const own = `skep-test/${name}:1`;
    docker('tag', await ensureScriptImage('skep-test/probe:1', SCRIPT), own);
    const isNew = async (): Promise<boolean> => String(await read('/server.mjs')).includes('another one');
    try {
      await ok('run', own, '--name', name);
      const url = await urlOf();
      expect(await ok('upgrade', '--yes', name)).toContain('is up to date');
      docker('tag', await ensureScriptImage('skep-test/probe:2', `${SCRIPT}// another one`), own);
      expect(await ok('upgrade', '--yes', name)).toContain('whose content has changed');
      expect(await isNew()).toBe(true);
      await ok('upgrade', '--undo', name);
      expect(await isNew()).toBe(false);
      await ok('upgrade', '--undo', name);
      expect(await isNew()).toBe(true);
      expect(await urlOf()).toBe(url);
      await ok('rm', name);
    } finally {
      docker('rmi', '-f', own);
    }
  });

  test('an image keeps what it declares as its volume', async () => {
    user = openUser({ SKEP_RUNTIME: 'docker' });
    const made = docker('create', await ensureScriptImage('skep-test/probe:1', SCRIPT));
    const image = `skep-test/${name}:1`;
    docker('commit', '--change', 'VOLUME /var/lib/notes', made, image);
    docker('rm', made);
    try {
      await keeps('/var/lib/notes/file', [image, '--name', name], killAll);
    } finally {
      docker('rmi', '-f', image);
    }
  });
});
