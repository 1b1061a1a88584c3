import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { errnoOf } from '@skep/core/files/errno.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { onDisk } from './fixtures/on-disk.ts';
import { ensureScriptImage } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, openUser, type SkepResult, type TestUser } from './skep.ts';

const components = { docker: await component('engine'), sandbox: await component('sandbox') };
const isRoot = process.getuid?.() === 0;
const PACKAGE = 'skep-test-full';

let user: TestUser;
/** Names on a shared engine must not meet those of another test run. */
let name: string;

function containers(): readonly string[] {
  if (!components.docker.available) return [];
  const args = ['-H', `unix://${engineSocket()}`, 'ps', '-aq', '--filter', `name=${name}`];
  return execFileSync('docker', args, { encoding: 'utf8' }).split('\n').filter(Boolean);
}

/** Containers of this test, its state files and its processes; packages that were fetched stay for the next run. */
function left(): readonly string[] {
  const kept = /(?:statuses|runconfigs|sandbox)\/.+|packages\/\..+/;
  const all = execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' }).split('\n');
  const processes = all.filter((line) => line.includes('bwrap') && line.includes(PACKAGE));
  return [...containers(), ...user.leftFiles().filter((file) => kept.test(file)), ...processes];
}

/** One line that names the disk and what to do, and nothing on stdout. */
function expectFull({ code, stdout, stderr }: SkepResult, disk: string): void {
  expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' });
  const errors = stderr.split('\n').filter((line) => line.startsWith('Error: '));
  expect(errors, stderr).toHaveLength(1);
  expect(errors[0]).toMatch(/the disk at "[^"]*" is full \(ENOSPC\).*free space on it/);
  expect(errors[0]).toContain(`"${path.join(user.dir, disk)}`);
}

/** Leaves no byte on a disk. */
function fill(folder: string): string {
  const file = path.join(user.dir, folder, 'filler');
  const to = openSync(file, 'w');
  try {
    for (;;) writeSync(to, Buffer.alloc(4096));
  } catch (error) {
    if (errnoOf(error) !== 'ENOSPC') throw error;
  } finally {
    closeSync(to);
  }
  return file;
}

describe.each(['docker', 'sandbox'] as const)('a full disk on %s', (kind) => {
  const there = components[kind];
  let registry: Awaited<ReturnType<typeof npmRegistryWith>>;
  let target: string;
  beforeEach(async () => {
    name = `full-${randomBytes(3).toString('hex')}`;
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
  const run = (): Promise<SkepResult> => user.skep(['run', target, '--name', name]);
  const canRun = there.available && isRoot;

  test.skipIf(!canRun)(title('keeps a server from starting, and nothing half is left', there), async () => {
    let refused = 0;
    for (const pages of [1, 2, 3, 4, 6, 8, 12]) {
      using _ = onDisk(user, ['state', 'data'], `size=${pages * 4}k`);
      const result = await run();
      if (result.code === 0) expect(await user.skep(['rm', name])).toMatchObject({ code: 0 });
      else expectFull(result, '');
      refused += result.code === 0 ? 0 : 1;
      await user.killSupervisor();
      expect(left()).toEqual([]);
    }
    expect(refused).toBeGreaterThan(0);
  });

  test.skipIf(!canRun)(
    title('ends no server that runs, which is stopped and removed all the same', there),
    async () => {
      using _ = onDisk(user, ['state', 'data'], 'size=4m');
      const { code, stdout, stderr } = await run();
      expect(code, stderr).toBe(0);
      const url = stdout.trim();
      const fillers = ['state', 'data'].map(fill);
      expect(await ask(url, 'tools/list')).toHaveProperty('result.tools');
      // It is started anew, at the latest when there is room again.
      await ask(url, 'x/exit').catch(() => {});
      for (const file of fillers) rmSync(file);
      await expect
        .poll(async () => ask(url, 'tools/list').catch(() => undefined), { timeout: 40_000 })
        .toHaveProperty('result.tools');
      const again = ['state', 'data'].map(fill);
      expectFull(await user.skep(['stop', name]), 'data');
      expect(await ask(url, 'ping').catch(() => 'gone')).toBe('gone');
      for (const file of again) rmSync(file);
      const status = async () =>
        JSON.parse((await user.skep(['status', name, '--format', 'json'])).stdout).status;
      await expect.poll(status, { timeout: 20_000 }).toBe('stopped');
      for (const folder of ['state', 'data']) fill(folder);
      expect(await user.skep(['rm', name])).toMatchObject({ code: 0, stdout: `${name}\n` });
      await user.killSupervisor();
      expect(left()).toEqual([]);
    },
  );
});

describe.skipIf(!components.sandbox.available || !isRoot)(
  title('a disk that fills while a package is fetched', components.sandbox),
  () => {
    test.each([32, 128, 512])('is named, and nothing of the package is left (%i KiB)', async (size) => {
      name = `full-${randomBytes(3).toString('hex')}`;
      const noise = `// ${randomBytes(512 * 1024).toString('hex')}\n`;
      await using registry = await npmRegistryWith(PACKAGE, MOODY_SERVER + noise);
      user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
      try {
        using _ = onDisk(user, ['cache'], `size=${size}k`);
        expectFull(await user.skep(['run', `npx://${PACKAGE}`, '--name', name]), 'cache');
        expect(left()).toEqual([]);
        expect(user.leftFiles().filter((file) => /cache\/skep\/packages\/.+/.test(file))).toEqual([]);
      } finally {
        await user.end();
      }
    });
  },
);
