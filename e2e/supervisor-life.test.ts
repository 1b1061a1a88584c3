import { randomBytes } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import path from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ensureTinyImage } from './images.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { muteEngine } from './fixtures/mute-engine.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { component, title } from './require.ts';
import { ask, ended, openUser, printed, signal, USERS, type SkepOptions, type TestUser } from './skep.ts';

const engine = await component('engine');
const sandbox = await component('sandbox');

let user: TestUser;
let image: string;
/** Names on a shared engine must not meet those of another test run. */
let name: string;

async function run(options: SkepOptions = {}, who = user, called = name): Promise<string> {
  const { code, stdout, stderr } = await who.skep(['run', image, '--name', called], options);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}

async function answers(url: string): Promise<void> {
  await vi.waitFor(async () => expect(await ask(url, 'ping')).toMatchObject({ result: {} }), {
    timeout: 15_000,
    interval: 50,
  });
}

/** What a shell passes on that has left this descriptor open, on something of the user's; who has that open. */
function leftOpen(descriptor: number) {
  const secret = path.join(user.dir, 'config');
  mkdirSync(secret);
  const fd = openSync(secret, 'r');
  const between = Array.from({ length: descriptor - 3 }, () => 'ignore' as const);
  return {
    stdio: ['ignore', 'pipe', 'pipe', ...between, fd] as const,
    holders: () => holdersOf(secret),
    close: () => closeSync(fd),
  };
}

/** Processes that have a file open. */
function holdersOf(file: string): number[] {
  const pids = listed('/proc').filter((entry) => /^\d+$/.test(entry));
  return pids.map(Number).filter((pid) => {
    const folder = `/proc/${pid}/fd`;
    return listed(folder).some((fd) => linkOf(path.join(folder, fd)) === file);
  });
}

/** Empty for a process that has ended. */
function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Undefined for what was closed while we looked. */
function linkOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

describe.skipIf(!engine.available)(title('the one supervisor of a state directory', engine), () => {
  beforeAll(async () => {
    image = await ensureTinyImage(TINY_SERVER);
  });
  beforeEach(() => {
    user = openUser({ SKEP_RUNTIME: 'docker' });
    name = `t${randomBytes(3).toString('hex')}-life`;
  });
  afterEach(() => user.end());

  test('comes back after SIGKILL, with every proxy on its URL, without any command', async () => {
    const urls = [await run(), await run({}, user, `${name}-2`)];
    const [before = 0] = user.supervisors();
    expect(user.watchers()).toHaveLength(1);
    signal([before], 'SIGKILL');
    for (const url of urls) await answers(url);
    expect(user.supervisors()).toHaveLength(1);
    expect(user.supervisors()).not.toContain(before);
    expect(user.watchers()).toHaveLength(1);
  });

  test('is one when a command starts another in the moment of its death', async () => {
    const url = await run();
    signal(user.supervisors(), 'SIGKILL');
    const listed = await Promise.all([1, 2, 3].map(() => user.skep(['list', '--all', '--format', 'json'])));
    // One may ask while another's supervisor is just taking it up.
    for (const { stdout } of listed) expect(stdout).toMatch(/"status": "(?:running|starting)"/);
    await answers(url);
    expect((await user.skep(['list', '--format', 'json'])).stdout).toContain('"status": "running"');
    await vi.waitFor(() => expect(user.supervisors()).toHaveLength(1), { timeout: 15_000, interval: 100 });
    await vi.waitFor(() => expect(user.watchers()).toHaveLength(1), { timeout: 15_000, interval: 100 });
  });

  test('is found when the runtime directory was emptied, and from a shell without one', async () => {
    await run();
    const before = user.supervisors();
    rmSync(user.env['XDG_RUNTIME_DIR'] ?? '', { recursive: true });
    const env = { XDG_RUNTIME_DIR: '', TMPDIR: user.dir };
    expect(await user.skep(['stop', name], { env })).toMatchObject({ code: 0, stderr: '' });
    expect(await user.skep(['start', name])).toMatchObject({ code: 0 });
    expect(user.supervisors()).toEqual(before);
  });

  test('is found when its own directory was removed', async () => {
    await run();
    const before = user.supervisors();
    rmSync(path.join(user.dir, 'state/skep/supervisor'), { recursive: true });
    expect(await user.skep(['stop', name])).toMatchObject({ code: 0, stderr: '' });
    expect(user.supervisors()).toEqual(before);
  });

  test('of one home is never reached from another home of the same user', async () => {
    const env = { XDG_RUNTIME_DIR: '' };
    const url = await run({ env });
    const other = openUser({ SKEP_RUNTIME: 'docker' });
    try {
      expect((await other.skep(['stop', name], { env })).stderr).toContain('not found');
      expect((await other.skep(['rm', name], { env })).stderr).toContain('not found');
      await answers(await run({ env }, other, `${name}-other`));
      expect(await other.skep(['rm', '--all', '--data'], { env })).toMatchObject({ code: 0, stderr: '' });
    } finally {
      await other.end();
    }
    await answers(url);
    expect(await user.skep(['stop', name], { env })).toMatchObject({ code: 0, stderr: '' });
  });

  test.skipIf(process.getuid?.() !== 0)(
    'starts where another user has taken its name in the temporary directory',
    async () => {
      const temp = path.join(user.dir, 'temp');
      mkdirSync(path.join(temp, 'skep-0'), { recursive: true });
      chownSync(path.join(temp, 'skep-0'), 65_534, 65_534);
      await answers(await run({ env: { XDG_RUNTIME_DIR: '', TMPDIR: temp } }));
    },
  );

  test.skipIf(process.getuid?.() !== 0)('shows other users nothing of its state, and no socket', async () => {
    await run({}, user);
    chmodSync(user.dir, 0o755);
    const kept = ['state', 'data'].map((folder) => path.join(user.dir, folder));
    const seen = ['-type', 'f', '-readable', '-o', '-type', 's', '-writable'];
    const found = spawnSync('find', [...kept, ...seen], { encoding: 'utf8', uid: 65_534, gid: 65_534 });
    expect(found.stdout).toBe('');
    expect(found.stderr).toContain('Permission denied');
  });

  test('keeps nothing open of the shell that started it', async () => {
    const left = leftOpen(63);
    try {
      const child = user.start(['run', image, '--name', name], left);
      expect((await ended(child)).code).toBe(0);
      expect(user.supervisors()).toHaveLength(1);
      expect(left.holders()).toEqual([process.pid]);
    } finally {
      left.close();
    }
  });

  test('and its workload survive kills of supervisor and commands at any moment', async () => {
    const url = await run();
    for (let round = 0; round < 8; round += 1) {
      const child = user.start([round % 2 === 0 ? 'stop' : 'start', name]);
      const over = ended(child);
      // Not to wait for something: the moment of the kill is what is tried.
      await delay(Math.random() * 600);
      if (round % 3 === 0) child.kill('SIGKILL');
      else signal(user.supervisors(), 'SIGKILL');
      // An engine may fail to start a container that it is still stopping for the one that died; that is its own word.
      expect((await over).stderr).not.toMatch(/internal error|ended before|broke|did not come up/);
    }
    expect(await user.skep(['start', name])).toMatchObject({ code: 0 });
    await answers(url);
    expect((await user.skep(['rm', '--all', '--data'])).code).toBe(0);
    expect([...user.supervisors(), ...user.watchers()]).toEqual([]);
    expect(user.leftFiles()).toEqual([]);
  }, 120_000);

  test('says that a start was interrupted when its command was killed', async () => {
    const child = user.start(['run', image, '--name', name, '--', 'mute']);
    const over = ended(child);
    try {
      await printed(child, 'Waiting for');
    } finally {
      child.kill('SIGKILL');
      await over;
    }
    await vi.waitFor(
      async () => {
        const { stdout } = await user.skep(['status', name, '--format', 'json']);
        expect(JSON.parse(stdout)).toMatchObject({ status: 'error', health: 'its start was interrupted' });
      },
      { timeout: 40_000, interval: 200 },
    );
  });
});

describe('a supervisor that waits for an engine which never answers', () => {
  test('ends all the same when it is asked to, and leaves its lock to the next one', async () => {
    const socket = path.join(tmpdir(), `skep-mute-${randomBytes(6).toString('hex')}.sock`);
    user = openUser({ SKEP_RUNTIME: 'docker', DOCKER_HOST: `unix://${socket}` });
    const engine = await muteEngine(socket);
    try {
      const child = user.start(['run', 'mute:1', '--name', 'mute']);
      const over = ended(child);
      try {
        await Promise.race([engine.asked, over]);
      } finally {
        child.kill('SIGKILL');
        await over;
      }
      signal(user.supervisors(), 'SIGTERM');
      const running = (): readonly number[] => [...user.supervisors(), ...user.watchers()];
      await vi.waitFor(() => expect(running()).toEqual([]), { timeout: 30_000, interval: 100 });
      engine.speak();
      expect(await user.skep(['rm', '--all', '--data'])).toMatchObject({ code: 0 });
      expect(user.leftFiles()).toEqual([]);
    } finally {
      engine.speak();
      await user.end();
      await engine.close();
    }
  });
});

describe.skipIf(!sandbox.available).each(USERS)(
  title('a server in the foreground of %s', sandbox),
  (_who, uid) => {
    let registry: NpmRegistry;
    beforeEach(async () => {
      registry = await npmRegistryWith('skep-test-open', MOODY_SERVER);
      user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url }, uid);
    });
    afterEach(async () => {
      await user.end();
      await registry[Symbol.asyncDispose]();
    });

    test('gets nothing that the shell left open', async () => {
      const left = leftOpen(43);
      const child = user.start(['run', 'npx://skep-test-open', '--foreground'], left);
      const over = ended(child);
      try {
        await printed(child, 'Press Ctrl-C');
        // The command itself may keep what it was given.
        expect(left.holders().filter((pid) => pid !== child.pid)).toEqual([process.pid]);
      } finally {
        child.kill('SIGINT');
        await over;
        left.close();
      }
      expect((await over).code).toBe(0);
    });
  },
);
