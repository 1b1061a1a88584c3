import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { builtBy } from './fixtures/built-by.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { ensureNodeBase, NODE_BASE } from './images.ts';
import { component, title } from './require.ts';
import { ask, ended, openUser, printed, type TestUser } from './skep.ts';

const engine = await component('engine');
const sandbox = await component('sandbox');
const npm = await component('npm');

let user: TestUser;

/** Processes that fetch a package for this user, in their sandbox. */
function fetching(): readonly number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const mounts = readFileSync(`/proc/${pid}/mountinfo`, 'utf8');
      return mounts.includes(`${path.basename(user.dir)}/cache/skep/packages/`);
    } catch {
      // It ended while we looked, or belongs to somebody else.
      return false;
    }
  });
}

describe.skipIf(!engine.available || !npm.available)(title('a build that was killed', engine, npm), () => {
  beforeEach(async () => {
    await ensureNodeBase();
    user = openUser({ SKEP_RUNTIME: 'docker' });
  });
  afterEach(() => user.end());

  test('leaves nothing on the engine after rm --all', async () => {
    const target = 'npx://@modelcontextprotocol/server-everything';
    const run = user.start(['run', target, '--runtime-image', NODE_BASE]);
    const finished = ended(run);
    await printed(run, 'Building');
    await vi.waitFor(async () => expect(await builtBy(user)).not.toEqual([]), { timeout: 60_000 });
    run.kill('SIGKILL');
    await finished;
    expect(await user.skep(['rm', '--all'])).toMatchObject({ code: 0 });
    // The engine notices late that nobody waits, and finishes its step.
    await vi.waitFor(
      async () => {
        await user.skep(['rm', '--all']);
        expect(await builtBy(user)).toEqual([]);
      },
      { timeout: 60_000, interval: 1000 },
    );
  });
});

describe.skipIf(!sandbox.available || !npm.available)(title('commands that meet', sandbox, npm), () => {
  beforeEach(() => {
    user = openUser({ SKEP_RUNTIME: 'sandbox' });
  });
  afterEach(() => user.end());

  test('rm --all leaves a server alone that another command is preparing', async () => {
    const run = user.start(['run', 'everything']);
    const finished = ended(run);
    await printed(run, 'Fetching');
    const removed = await user.skep(['rm', '--all']);
    expect(removed).toMatchObject({ code: 0, stderr: expect.stringContaining('left alone') });
    const { code, stdout, stderr } = await finished;
    expect(code, stderr).toBe(0);
    expect(await ask(stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
    expect(await user.skep(['rm', '--all', '--data'])).toMatchObject({ code: 0, stderr: '' });
    expect(user.leftFiles()).toEqual([]);
  });

  test('a killed run ends what it had begun, and the next one removes what it had fetched so far', async () => {
    await using registry = await npmRegistryWith('skep-test-stalled', '', { stalls: true });
    const run = user.start(['run', 'npx://skep-test-stalled'], {
      env: { npm_config_registry: registry.url },
    });
    const closed = once(run, 'exit');
    await vi.waitFor(() => expect(fetching()).not.toEqual([]), { timeout: 30_000, interval: 100 });
    run.kill('SIGKILL');
    await closed;
    await vi.waitFor(() => expect(fetching()).toEqual([]), { timeout: 30_000, interval: 100 });
    const packages = path.join(user.dir, 'cache/skep/packages');
    const abandoned = readdirSync(packages);
    expect(abandoned).toEqual([expect.stringMatching(/^\./)]);
    await using other = await npmRegistryWith('skep-test-other', MOODY_SERVER);
    const next = await user.skep(['run', 'npx://skep-test-other'], {
      env: { npm_config_registry: other.url },
    });
    expect(next.code, next.stderr).toBe(0);
    expect(readdirSync(packages)).toEqual([expect.stringMatching(/^npm-skep-test-other@/)]);
    expect(await user.skep(['rm', '--all', '--data'])).toMatchObject({ code: 0, stderr: '' });
    expect(user.leftFiles()).toEqual([]);
  });

  test('a state directory too deep for a socket is no obstacle', async () => {
    const temp = path.join(user.dir, 'temp');
    mkdirSync(temp);
    await using registry = await npmRegistryWith('skep-test-deep', MOODY_SERVER);
    const deep = path.join(user.dir, 'd'.repeat(120));
    const env = { XDG_STATE_HOME: deep, TMPDIR: temp, npm_config_registry: registry.url };
    const started = await user.skep(['run', 'npx://skep-test-deep'], { env });
    expect(started.code, started.stderr).toBe(0);
    expect((await user.skep(['list'], { env })).stdout).toContain('running');
    expect(await user.skep(['rm', '--all', '--data'], { env })).toMatchObject({ code: 0, stderr: '' });
    expect(user.leftFiles()).toEqual([]);
    expect(readdirSync(temp).filter((name) => name.startsWith('skep-'))).toEqual([]);
  });

  test('without a supervisor a run fails with the reason, and nothing is left', async () => {
    mkdirSync(path.join(user.dir, 'state/skep'), { recursive: true });
    writeFileSync(path.join(user.dir, 'state/skep/supervisor'), '');
    const { code, stderr } = await user.skep(['run', 'everything']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/state\/skep\/supervisor", .* cannot be used: it is not a directory/);
    // Said before anything is fetched.
    expect(stderr).not.toMatch(/Warning|Fetching/);
    const left = user.leftFiles().filter((name) => /(statuses|runconfigs|packages|sandbox)\/.+/.test(name));
    expect(left).toEqual([]);
    rmSync(path.join(user.dir, 'state/skep/supervisor'));
  });

  test('what a killed run saved is shown as an error and can be removed', async () => {
    const folder = path.join(user.dir, 'state/skep/runconfigs');
    mkdirSync(folder, { recursive: true });
    const config = { name: 'left', image: 'npm-x@1-000000000000', transport: 'stdio', port: 40_123 };
    writeFileSync(path.join(folder, 'left.json'), JSON.stringify(config));
    const listed = JSON.parse((await user.skep(['list', '--all', '--format', 'json'])).stdout) as unknown;
    expect(listed).toMatchObject([{ name: 'left', status: 'error' }]);
    expect(await user.skep(['list'])).toEqual({
      code: 0,
      stdout: 'No MCP servers found\n',
      stderr: 'Not running: left (error); see skep list --all\n',
    });
    expect((await user.skep(['status', 'left'])).stdout).toContain('skep rm left');
    expect(await user.skep(['rm', 'left'])).toMatchObject({ code: 0, stderr: '' });
    const gone = 'Warning: workload "left" not found\n';
    expect(await user.skep(['rm', 'left'])).toEqual({ code: 0, stdout: '', stderr: gone });
    expect((await user.skep(['list', '--all'])).stdout).toBe('No MCP servers found\n');
  });
});
