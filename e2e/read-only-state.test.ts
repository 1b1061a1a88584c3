import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const isRoot = process.getuid?.() === 0;
const PACKAGE = 'skep-test-read-only';
const FOLDERS = ['state', 'data'] as const;

describe.skipIf(!sandbox.available || !isRoot)(title('state and data that can only be read', sandbox), () => {
  let user: TestUser;
  let registry: NpmRegistry;
  let isMounted: boolean;

  beforeEach(async () => {
    registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    isMounted = false;
    for (const one of FOLDERS) mkdirSync(path.join(user.dir, one));
  });
  afterEach(async () => {
    letWrite();
    await user.end();
    await registry[Symbol.asyncDispose]();
  });

  /** As a disk that is mounted so, also for root. */
  function lock(): void {
    isMounted = true;
    for (const one of FOLDERS) {
      const folder = path.join(user.dir, one);
      execFileSync('mount', ['--bind', folder, folder]);
      execFileSync('mount', ['-o', 'remount,bind,ro', folder]);
    }
  }
  function letWrite(): void {
    if (isMounted) for (const one of FOLDERS) execFileSync('umount', [path.join(user.dir, one)]);
    isMounted = false;
  }

  /** The cache has the compiled program, whatever is asked. */
  const left = () => user.leftFiles().filter((file) => !/^cache\/skep(?:$|\/(?!packages))/.test(file));
  const ask = (line: string) => user.skep(line.split(' '));

  test.each([
    `run npx://${PACKAGE} --name a1`,
    `run npx://${PACKAGE} --name a1 --foreground`,
    'rm --all --data',
    'group create team',
    'prune',
    'upgrade a1',
  ])('refuses in one line what would write, and leaves nothing: %s', async (line) => {
    lock();
    const { code, stderr } = await ask(line);
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(
      /^Error: [^\n]* can only be read \(EROFS\); have it mounted for writing, or choose another place\n$/,
    );
    expect(left()).toEqual([]);
  });

  test.each([
    ['list --all', 0, 'No MCP servers found\n', ''],
    ['stop a1', 0, '', 'Warning: workload "a1" not found\n'],
    ['rm a1', 0, '', 'Warning: workload "a1" not found\n'],
    ['start a1', 1, '', 'Error: workload "a1" not found; see the names with skep list --all\n'],
  ])('keeps nothing from being said that is only read: %s', async (line, code, stdout, stderr) => {
    lock();
    expect(await ask(line)).toEqual({ code, stdout, stderr });
    expect(left()).toEqual([]);
  });
});
