import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { ask, ended, openUser, printed, skepEntry } from './skep.ts';

const sandbox = await component('sandbox');
const keyring = await component('secret-service');
const PACKAGE = 'skep-test-tells-its-environment';
const VALUE = 'hunter2-of-the-test-of-secrets';

const SERVER = `#!/usr/bin/env node
import { createInterface } from 'node:readline';
const initialize = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'teller', version: '1' } };
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const result = method === 'initialize' ? initialize : { token: process.env.TOKEN ?? null };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
});
`;

/** A session bus with a keyring that is unlocked. */
async function session() {
  const home = mkdtempSync(path.join(tmpdir(), 'skep-keyring-'));
  const script =
    'printf testpw | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; echo "bus $DBUS_SESSION_BUS_ADDRESS end"; exec sleep 300';
  const child = spawn('dbus-run-session', ['--', 'sh', '-c', script], {
    env: { PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: home },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  const said = await printed(child, ' end');
  return {
    address: /bus (\S+) end/.exec(said)?.[1] ?? '',
    async [Symbol.asyncDispose]() {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Files and command lines that have the value. */
function seenIn(directory: string): readonly string[] {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  const lines = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => `/proc/${pid}/cmdline`);
  return [...files, ...lines].filter((file) => {
    try {
      return readFileSync(file).includes(VALUE);
    } catch {
      // It ended meanwhile.
      return false;
    }
  });
}

test.skipIf(!sandbox.available || !keyring.available)(
  title('a secret reaches its server, and lies nowhere else', sandbox, keyring),
  async () => {
    await using registry = await npmRegistryWith(PACKAGE, SERVER);
    await using bus = await session();
    const user = openUser({
      SKEP_RUNTIME: 'sandbox',
      npm_config_registry: registry.url,
      DBUS_SESSION_BUS_ADDRESS: bus.address,
    });
    const ok = async (...args: readonly string[]): Promise<string> => {
      const result = await user.skep(args);
      expect(result).toMatchObject({ code: 0 });
      return result.stdout.trim();
    };
    try {
      const storing = user.start(['secret', 'set', 'mine'], { stdio: ['pipe', 'pipe', 'pipe'] });
      storing.stdin?.end(`${VALUE}\n`);
      await printed(storing, 'Secret mine is stored (encrypted)');
      const url = await ok('run', `npx://${PACKAGE}`, '--name', 'teller', '--secret', 'mine,target=TOKEN');
      expect(await ask(url, 'x/env')).toMatchObject({ result: { token: VALUE } });
      expect(seenIn(user.dir)).toEqual([]);
      await ok('export', 'teller', path.join(user.dir, 'exported.json'));
      expect(await ok('status', 'teller')).not.toContain(VALUE);
      expect(seenIn(user.dir)).toEqual([]);
      await ok('stop', 'teller');
      await ok('start', 'teller');
      expect(await ask(url, 'x/env')).toMatchObject({ result: { token: VALUE } });
      // A supervisor of its own accord looks it up again.
      await user.killSupervisor();
      await ok('list');
      expect(await ask(url, 'x/env')).toMatchObject({ result: { token: VALUE } });
      await ok('rm', 'teller');
      expect(await ok('secret', 'get', 'mine')).toBe(VALUE);
    } finally {
      await user.end();
    }
  },
);

test('a disk on which nothing more can be written takes no secret, and keeps those it has', async () => {
  const user = openUser({ SKEP_SECRETS_PASSWORD: 'correct horse' });
  const set = async (name: string, value: string, ...before: readonly string[]) => {
    const [command, ...args] = [...before, process.execPath, '--', skepEntry(), 'secret', 'set', name];
    const child = spawn(command, args, { env: user.env, cwd: user.dir, stdio: 'pipe' });
    child.stdin.end(value);
    return ended(child);
  };
  try {
    expect(await set('first', VALUE)).toMatchObject({ code: 0 });
    const full = ['sh', '-c', 'ulimit -f 0; exec "$@"', 'sh'];
    expect(await set('second', 'x', ...full)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^Error: cannot write ".*": EFBIG; /),
    });
    expect(await user.skep(['secret', 'get', 'first'])).toMatchObject({ code: 0, stdout: `${VALUE}\n` });
    expect(await user.skep(['secret', 'list'])).toMatchObject({
      stdout: expect.not.stringContaining('second'),
    });
    expect(user.leftFiles().filter((file) => file.endsWith('.tmp'))).toEqual([]);
  } finally {
    await user.end();
  }
});
