import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { builtBy } from './fixtures/built-by.ts';
import { engineRelay } from './fixtures/engine-relay.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { onDisk } from './fixtures/on-disk.ts';
import { engine, ensureNodeBase, ensureScriptImage, NODE_BASE } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, ended, openUser, printed, type SkepResult, type TestUser } from './skep.ts';

const components = { docker: await component('engine'), sandbox: await component('sandbox') };

const PACKAGE = 'skep-test-moody';

let user: TestUser;
/** Names on a shared engine must not meet those of another test run. */
let name: string;

function docker(...args: string[]): string {
  return execFileSync('docker', ['-H', `unix://${engineSocket()}`, ...args], { encoding: 'utf8' });
}

/** Containers of this test, its state files and its processes. */
function left(): readonly string[] {
  const containers = components.docker.available
    ? docker('ps', '-aq', '--filter', `name=${name}`).split('\n').filter(Boolean)
    : [];
  const files = user.leftFiles().filter((file) => /(?:statuses|runconfigs|packages|sandbox)\/.+/.test(file));
  return [...containers, ...files, ...processes()];
}

const isRoot = process.getuid?.() === 0;

/** Sandboxes that hold something of this user's. */
function processes(): readonly string[] {
  const all = execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' }).split('\n');
  return all.filter((line) => line.includes('bwrap') && line.includes(PACKAGE));
}

/** One line for the problem, however many of the server's own before it, and nothing on stdout. */
function expectRefusal({ code, stdout, stderr }: SkepResult, ...words: string[]): void {
  expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' });
  const lines = stderr.trimEnd().split('\n');
  expect(lines.filter((line) => line.startsWith('Error: '))).toEqual([lines.at(-1)]);
  for (const word of words) expect(stderr).toContain(word);
}

describe.each(['docker', 'sandbox'] as const)('bad input of a run on %s', (kind) => {
  const there = components[kind];
  let registry: Awaited<ReturnType<typeof npmRegistryWith>>;
  let target: string;
  beforeEach(async () => {
    name = `bad-${randomBytes(3).toString('hex')}`;
    registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
    user = openUser({ SKEP_RUNTIME: kind, npm_config_registry: registry.url });
    if (!there.available) return;
    target =
      kind === 'docker' ? await ensureScriptImage('skep-test/moody:1', MOODY_SERVER) : `npx://${PACKAGE}`;
  });
  afterEach(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
  });
  const run = (...args: string[]): Promise<SkepResult> => user.skep(['run', target, '--name', name, ...args]);
  const onKind = (text: string): string => title(text, there);

  test.skipIf(!there.available)(onKind('a server that crashes at start'), async () => {
    expectRefusal(await run('--', 'crash'), 'fatal: KEY is not set', 'exit status 3');
    expect(left()).toEqual([]);
  });

  test.skipIf(!there.available)(
    onKind('a server that ends after silent seconds is not called running'),
    async () => {
      expectRefusal(await run('--', 'crash-later'), 'fatal: lost it', 'exit status 4');
      expect(left()).toEqual([]);
    },
  );

  test.skipIf(!there.available)(
    onKind('a program that never speaks MCP is refused, unless nobody asks'),
    async () => {
      expectRefusal(await run('--check-timeout', '3s', '--', 'mute'), 'did not answer', '--no-check');
      expect(left()).toEqual([]);
      const unchecked = await run('--no-check', '--', 'mute');
      expect(unchecked.code, unchecked.stderr).toBe(0);
      expect(unchecked.stderr).toContain('was not asked whether it answers');
    },
  );

  test.skipIf(!there.available)(
    onKind('a server that ends later: its clients hear why, until it is back'),
    async () => {
      const { stdout, stderr } = await run();
      expect(stderr).toContain('(moody 1)');
      const url = stdout.trim();
      const send = (body: object): Promise<Response> =>
        fetch(url, {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        });
      const lost = await send({ jsonrpc: '2.0', id: 1, method: 'x/exit' });
      expect(lost.status).toBe(502);
      expect(await lost.text()).toContain('the server stopped before it had answered; see skep logs');
      const params = {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 't', version: '1' },
      };
      const away = await send({ jsonrpc: '2.0', id: 2, method: 'initialize', params });
      expect([away.status, away.headers.get('retry-after')]).toEqual([503, '5']);
      expect(await away.text()).toContain('the server stopped and is being restarted; see skep logs');
      await expect
        .poll(async () => ask(url, 'tools/list').catch(() => undefined), { timeout: 30_000 })
        .toHaveProperty('result.tools');
    },
  );

  test.skipIf(!there.available)(onKind('a server that prints banners works'), async () => {
    const { code, stdout, stderr } = await run('--', 'banner');
    expect(code, stderr).toBe(0);
    expect(await ask(stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
  });

  test.skipIf(!there.available)(onKind('a busy port'), async () => {
    await using server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as net.AddressInfo;
    expectRefusal(await run('--proxy-port', `${port}`), `proxy port ${port} is not available`);
    expectRefusal(await run('-p', `${port}:80`), `${port}`);
    expect(left()).toEqual([]);
  });

  test.skipIf(!there.available)(onKind('a second workload of the same name'), async () => {
    const { stdout } = await run();
    expectRefusal(await run(), `'${name}' already exists`, 'skep rm');
    expect(await ask(stdout.trim(), 'ping')).toMatchObject({ result: {} });
  });

  test.skipIf(!there.available)(onKind('a state directory that cannot be written'), async () => {
    const blocked = path.join(user.dir, 'blocked');
    writeFileSync(blocked, '');
    const env = { XDG_STATE_HOME: path.join(blocked, 'state') };
    expectRefusal(await user.skep(['run', target, '--name', name], { env }), blocked);
    expect(left()).toEqual([]);
  });

  test.skipIf(!there.available)(onKind('a data directory that cannot be written'), async () => {
    const blocked = path.join(user.dir, 'blocked');
    writeFileSync(blocked, '');
    const env = { XDG_DATA_HOME: path.join(blocked, 'data') };
    expectRefusal(await user.skep(['run', target, '--name', name], { env }), blocked);
    expect(left()).toEqual([]);
  });

  test.skipIf(!there.available)(onKind('a run configuration that cannot be saved'), async () => {
    const file = path.join(user.dir, `state/skep/runconfigs/${name}.json`);
    mkdirSync(path.join(file, 'in-the-way'), { recursive: true });
    expectRefusal(await run(), file);
    rmSync(file, { recursive: true });
    expect(left()).toEqual([]);
  });

  test.skipIf(!there.available)(onKind('two runs of one name at once: one has it'), async () => {
    const [first, second] = await Promise.all([run(), run()]);
    const [won, lost] = first.code === 0 ? [first, second] : [second, first];
    expect(won.code, won.stderr).toBe(0);
    expectRefusal(lost, `'${name}' already exists`);
    expect(await ask(won.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
    expect(await user.skep(['rm', name])).toMatchObject({ code: 0 });
    expect(left().filter((file) => !file.includes('/packages/'))).toEqual([]);
  });

  test.skipIf(!there.available || !isRoot)(onKind('a disk that can only be read'), async () => {
    using _ = onDisk(user, ['state', 'data'], 'ro');
    expectRefusal(await run(), 'EROFS', `${user.dir}/`);
    expect(left()).toEqual([]);
  });

  test.skipIf(!there.available).each([
    ['it is made', 'Starting'],
    ['it is waited for', 'Waiting for'],
  ])(onKind('Ctrl-C while %s'), async (_, said) => {
    const child = user.start(['run', target, '--name', name, '--', 'mute']);
    const finished = ended(child);
    await printed(child, said);
    child.kill('SIGINT');
    expectRefusal(await finished);
    expect(left()).toEqual([]);
  });

  test.skipIf(!there.available)(onKind('Ctrl-C while the package is fetched or built'), async () => {
    // Accepts and never answers, as a registry behind a broken network does.
    const silent = net.createServer(() => {});
    await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as net.AddressInfo;
    const base = kind === 'docker' ? ['--runtime-image', await ensureNodeBase()] : [];
    const child = user.start(['run', `npx://${PACKAGE}`, '--name', name, ...base], {
      env: { npm_config_registry: `http://127.0.0.1:${port}/` },
    });
    const finished = ended(child);
    await printed(child, 'Looking up');
    child.kill('SIGINT');
    expectRefusal(await finished);
    silent.close();
    expect(left()).toEqual([]);
  });
});

describe.skipIf(!components.docker.available)(
  title('an engine in the middle of a run', components.docker),
  () => {
    let relay: Awaited<ReturnType<typeof engineRelay>>;
    let silent: net.Server;
    let silentUrl: string;
    beforeEach(async () => {
      name = `bad-${randomBytes(3).toString('hex')}`;
      user = openUser({ SKEP_RUNTIME: 'docker' });
      relay = await engineRelay(path.join(user.dir, 'engine.sock'));
      silent = net.createServer(() => {});
      await new Promise<void>((resolve) => void silent.listen(0, '0.0.0.0', resolve));
      silentUrl = `127.0.0.1:${(silent.address() as net.AddressInfo).port}`;
    });
    afterEach(async () => {
      silent.close();
      await relay.cut();
      rmSync(relay.path, { force: true });
      await user.end();
    });
    const onRelay = () => ({ env: { DOCKER_HOST: `unix://${relay.path}` } });

    test.each(['dies', 'is left with Ctrl-C'])('%s while it pulls', async (how) => {
      const child = user.start(['run', `${silentUrl}/slow/image:1`, '--name', name], onRelay());
      const finished = ended(child);
      await printed(child, 'Pulling');
      if (how === 'dies') await relay.cut();
      else child.kill('SIGINT');
      expectRefusal(await finished, how === 'dies' ? relay.path : 'Error');
      expect(left()).toEqual([]);
    });

    test.each(['dies', 'is left with Ctrl-C'])('%s while it builds', async (how) => {
      // The build waits for system packages, which the package manager of this base takes a minute to install.
      const base = await slowBase();
      const registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
      const child = user.start(['run', `npx://${PACKAGE}`, '--name', name, '--runtime-image', base], {
        env: { ...onRelay().env, npm_config_registry: registry.url },
      });
      const finished = ended(child);
      await printed(child, 'Building an image');
      await vi.waitFor(async () => expect(await builtBy(user)).not.toEqual([]), {
        timeout: 60_000,
        interval: 100,
      });
      if (how === 'dies') await relay.cut();
      else child.kill('SIGINT');
      expectRefusal(await finished, how === 'dies' ? relay.path : 'Error');
      await registry[Symbol.asyncDispose]();
      expect(left()).toEqual([]);
      // An engine that is gone cannot be tidied; the next build on it is a build like any other.
      if (how !== 'dies') expect(await builtBy(user)).toEqual([]);
    });

    /** The Node base with a package manager that takes its time. */
    async function slowBase(): Promise<string> {
      await ensureNodeBase();
      const made = docker('create', NODE_BASE).trim();
      const script = '#!/bin/sh\necho apk is slow\nexec sleep 60\n';
      const file = path.join(user.dir, 'apk');
      writeFileSync(file, script, { mode: 0o755 });
      docker('cp', file, `${made}:/usr/local/bin/apk`);
      const tag = 'skep-test/slow-base:1';
      const query = new URLSearchParams({ container: made, repo: 'skep-test/slow-base', tag: '1' });
      await engine('POST', `/commit?${query.toString()}`, {});
      docker('rm', made);
      return tag;
    }
  },
);
