import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ensureTinyImage } from './images.ts';
import { engineRelay } from './fixtures/engine-relay.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, ended, openUser, printed, type TestUser } from './skep.ts';

const engine = await component('engine');
const sandbox = await component('sandbox');
const npm = await component('npm');

/** What the engine has under these names, by container id and start time: changes when something was restarted. */
function containers(prefix: string): string[] {
  const list = docker('ps', '-a', '--filter', `name=${prefix}`, '--format', '{{.ID}}')
    .split('\n')
    .filter(Boolean);
  return list
    .map((id) => docker('inspect', id, '--format', '{{.Id}} {{.State.StartedAt}} {{.State.Running}}').trim())
    .toSorted();
}

function docker(...args: string[]): string {
  return execFileSync('docker', ['-H', `unix://${engineSocket()}`, ...args], { encoding: 'utf8' });
}

let user: TestUser;
let image: string;
/** Names on a shared engine must not meet those of another test run. */
let prefix: string;

async function run(name: string, ...more: string[]): Promise<string> {
  const { code, stdout, stderr } = await user.skep(['run', image, '--name', name, ...more]);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}

describe.skipIf(!engine.available)(title('workloads on an engine', engine), () => {
  beforeAll(async () => {
    image = await ensureTinyImage(TINY_SERVER);
  });
  beforeEach(() => {
    user = openUser({ SKEP_RUNTIME: 'docker' });
    prefix = `t${randomBytes(3).toString('hex')}`;
  });
  afterEach(async () => {
    await user.end();
    expect(containers(prefix)).toEqual([]);
  });

  test('run prints only the URL on stdout; the server answers there with its variables', async () => {
    const url = await run(`${prefix}-a`, '-e', 'GREETING=hello there');
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    const { result } = await ask(url, 'tools/call', { name: 'greet' });
    expect(result).toEqual({ content: [{ type: 'text', text: 'hello there' }] });
  });

  test('list, status, logs and export show it', async () => {
    const name = `${prefix}-a`;
    const url = await run(name, '-l', 'team=blue');
    const [item] = JSON.parse((await user.skep(['list', '--format', 'json'])).stdout) as unknown[];
    expect(item).toMatchObject({
      name,
      package: image,
      url,
      transport_type: 'stdio',
      proxy_mode: 'streamable-http',
      status: 'running',
      labels: { team: 'blue' },
      group: 'default',
    });
    expect(JSON.parse((await user.skep(['list', '--format', 'mcpservers'])).stdout)).toEqual({
      mcpServers: { [name]: { url, type: 'streamable-http' } },
    });
    expect((await user.skep(['list', '-l', 'team=red'])).stdout).toBe('No MCP servers found\n');
    expect(JSON.parse((await user.skep(['status', name, '--format', 'json'])).stdout)).toMatchObject({
      name,
      status: 'running',
      url,
      uptime: '0m',
    });
    expect((await user.skep(['logs', name])).stdout).toContain('tiny server is up');
  });

  test('stop and start keep the URL and the container', async () => {
    const name = `${prefix}-a`;
    const url = await run(name);
    const before = containers(prefix)[0]?.split(' ')[0];
    expect((await user.skep(['stop', name])).code).toBe(0);
    await expect(ask(url, 'ping')).rejects.toThrow();
    expect((await user.skep(['list'])).stdout).toBe('No MCP servers found\n');
    expect((await user.skep(['list', '--all', '--format', 'json'])).stdout).toContain('"status": "stopped"');
    expect(await user.skep(['stop', name])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('was not running'),
    });
    expect((await user.skep(['start', name])).code).toBe(0);
    expect(containers(prefix)[0]?.split(' ')[0]).toBe(before);
    expect(await ask(url, 'ping')).toMatchObject({ result: {} });
  });

  test('stopping what is stopped starts no supervisor', async () => {
    const name = `${prefix}-a`;
    await run(name);
    expect((await user.skep(['stop', name])).code).toBe(0);
    await user.killSupervisor();
    expect(await user.skep(['stop', name])).toMatchObject({
      code: 0,
      stderr: `Warning: workload "${name}" was not running\n`,
    });
    expect([...user.supervisors(), ...user.watchers()]).toEqual([]);
  });

  test('export, rm and import give the same workload', async () => {
    const name = `${prefix}-a`;
    const url = await run(name, '-e', 'GREETING=again', '-l', 'team=blue');
    const file = path.join(user.dir, 'out/export.json');
    expect((await user.skep(['export', name, file])).code).toBe(0);
    expect(await user.skep(['export', name, '-'])).toEqual({
      code: 0,
      stdout: readFileSync(file, 'utf8'),
      stderr: '',
    });
    const taken = await user.skep(['run', '--from-config', file]);
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining('another "name" in the file') });
    expect(taken.stderr).not.toContain('--name');
    expect((await user.skep(['rm', name])).code).toBe(0);
    expect(await user.skep(['run', '--from-config', file])).toMatchObject({ code: 0, stdout: `${url}\n` });
    const { result } = await ask(url, 'tools/call', { name: 'greet' });
    expect(result).toEqual({ content: [{ type: 'text', text: 'again' }] });
  });

  test('a second workload of the same name is refused and the first is untouched', async () => {
    const name = `${prefix}-a`;
    await run(name);
    const before = containers(prefix);
    const second = await user.skep(['run', image, '--name', name]);
    expect(second).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`workload with name '${name}' already exists`),
    });
    expect(containers(prefix)).toEqual(before);
  });

  test('two runs of one name at the same time: one wins', async () => {
    const name = `${prefix}-a`;
    const both = await Promise.all([1, 2].map(() => user.skep(['run', image, '--name', name])));
    expect(both.filter((one) => one.code === 0)).toHaveLength(1);
    expect(both.filter((one) => one.code === 1)).toHaveLength(1);
    expect(containers(prefix)).toHaveLength(1);
  });

  test('a busy port is refused and nothing is left', async () => {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = String(typeof address === 'object' && address ? address.port : 0);
    const result = await user.skep(['run', image, '--name', `${prefix}-a`, '--proxy-port', port]);
    server.close();
    expect(result).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`requested proxy port ${port} is not available`),
    });
    expectNothing();
  });

  test('a server that crashes at start fails the run with its last lines, and nothing is left', async () => {
    const result = await user.skep(['run', image, '--name', `${prefix}-a`, '--', 'crash']);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain('fatal: KEY is not set');
    expect(result.stderr).toContain('exit status 3');
    expectNothing();
  });

  test('a server that prints banners works', async () => {
    const url = await run(`${prefix}-a`, '--', 'banner');
    expect(await ask(url, 'tools/list')).toMatchObject({ result: { tools: [{ name: 'greet' }] } });
  });

  test('an image that does not exist is refused and nothing is left', async () => {
    const result = await user.skep(['run', 'localhost:1/no/such:image', '--name', `${prefix}-a`]);
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('localhost:1/no/such:image') });
    expect(result.stderr).toContain('cannot reach that registry');
    expectNothing();
  });

  test('--foreground hosts it here; Ctrl-C removes it completely', async () => {
    const child = user.start(['run', image, '--name', `${prefix}-a`, '--foreground']);
    const finished = ended(child);
    const url = /http:\S+\/mcp/.exec(await printed(child, 'Press Ctrl-C'))?.[0] ?? '';
    expect(await ask(url, 'ping')).toMatchObject({ result: {} });
    expect(user.supervisors()).toEqual([]);
    child.kill('SIGINT');
    expect((await finished).code).toBe(0);
    expectNothing();
  });

  test('Ctrl-C while it starts leaves nothing', async () => {
    const child = user.start(['run', image, '--name', `${prefix}-a`, '--', 'mute']);
    const finished = ended(child);
    await printed(child, 'Waiting for');
    child.kill('SIGINT');
    expect((await finished).code).toBe(1);
    expectNothing();
  });

  test('after SIGKILL of the supervisor and its watcher the next command brings every proxy back, and no container was restarted', async () => {
    const urls = [await run(`${prefix}-a`), await run(`${prefix}-b`)];
    const before = containers(prefix);
    await user.killSupervisor();
    const listed = JSON.parse((await user.skep(['list', '--format', 'json'])).stdout) as {
      url: string;
      status: string;
    }[];
    expect(listed.map((one) => one.status)).toEqual(['running', 'running']);
    expect(listed.map((one) => one.url)).toEqual(urls);
    for (const url of urls) expect(await ask(url, 'ping')).toMatchObject({ result: {} });
    expect(containers(prefix)).toEqual(before);
    expect(user.supervisors()).toHaveLength(1);
  });

  test('many runs at once start one supervisor', async () => {
    const results = await Promise.all(
      [1, 2, 3, 4, 5].map((n) => user.skep(['run', image, '--name', `${prefix}-${n}`])),
    );
    expect(results.map((one) => one.code)).toEqual([0, 0, 0, 0, 0]);
    expect(user.supervisors()).toHaveLength(1);
  });

  test('the supervisor does not keep the caller’s environment', async () => {
    await user.skep(['run', image, '--name', `${prefix}-a`], { env: { MY_TOKEN: 'hush-hush' } });
    const [pid = 0] = user.supervisors();
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('hush-hush');
  });

  test('a supervisor of another version is replaced; its workload runs on', async () => {
    const url = await run(`${prefix}-a`);
    const before = containers(prefix);
    await user.killSupervisor();
    const retired = await otherVersion(user);
    expect((await user.skep(['status', `${prefix}-a`])).stdout).toContain('running');
    expect(retired()).toBe(true);
    expect(await ask(url, 'ping')).toMatchObject({ result: {} });
    expect(containers(prefix)).toEqual(before);
  });

  test('rm --all --data leaves nothing but the configuration', async () => {
    await run(`${prefix}-a`);
    await run(`${prefix}-b`);
    writeFileSync(path.join(user.dir, 'keep'), '');
    expect((await user.skep(['rm', '--all', '--data'])).code).toBe(0);
    expectNothing();
    expect(user.supervisors()).toEqual([]);
    expect(user.watchers()).toEqual([]);
    expect(user.leftFiles()).toEqual([]);
  });

  test('with nothing left to host the supervisor ends by itself', async () => {
    await run(`${prefix}-a`);
    await user.skep(['rm', `${prefix}-a`]);
    await vi.waitFor(() => expect([...user.supervisors(), ...user.watchers()]).toEqual([]), {
      timeout: 15_000,
      interval: 250,
    });
  });

  test('an engine that dies: list tells, run fails clearly; when it is back the workload goes on', async () => {
    const relay = await engineRelay(path.join(user.dir, 'engine.sock'));
    const env = { DOCKER_HOST: `unix://${relay.path}` };
    const name = `${prefix}-a`;
    const started = await user.skep(['run', image, '--name', name], { env });
    expect(started.code).toBe(0);
    const before = containers(prefix);
    await relay.cut();
    await vi.waitFor(
      async () =>
        expect((await user.skep(['list', '--all', '--format', 'json'], { env })).stdout).toContain(
          '"status": "unhealthy"',
        ),
      { timeout: 15_000, interval: 300 },
    );
    const refused = await user.skep(['run', image, '--name', `${prefix}-b`], { env });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(relay.path) });
    await relay.mend();
    await vi.waitFor(
      async () =>
        expect((await user.skep(['list', '--format', 'json'], { env })).stdout).toContain(
          '"status": "running"',
        ),
      { timeout: 30_000, interval: 500 },
    );
    expect(await ask(started.stdout.trim(), 'ping')).toMatchObject({ result: {} });
    expect(containers(prefix)).toEqual(before);
    await user.skep(['rm', name], { env });
    await relay.cut();
  });

  function expectNothing(): void {
    expect(containers(prefix)).toEqual([]);
    expect(user.leftFiles().filter((name) => /(statuses|runconfigs)\/.+/.test(name))).toEqual([]);
  }
});

describe.skipIf(!sandbox.available || !npm.available)(title('workloads in the sandbox', sandbox, npm), () => {
  beforeAll(() => {
    user = openUser({ SKEP_RUNTIME: 'sandbox' });
  });
  afterAll(() => user.end());

  test('a server of the catalogue runs, survives its supervisor, and leaves nothing', async () => {
    const started = await user.skep(['run', 'everything']);
    expect(started.code, started.stderr).toBe(0);
    const url = started.stdout.trim();
    expect(await ask(url, 'tools/list')).toHaveProperty('result.tools');
    await user.killSupervisor();
    expect((await user.skep(['status', 'everything'])).stdout).toContain('running');
    expect(await ask(url, 'tools/list')).toHaveProperty('result.tools');
    expect((await user.skep(['rm', '--all', '--data'])).code).toBe(0);
    expect(user.leftFiles()).toEqual([]);
    expect(user.supervisors()).toEqual([]);
  });

  test('a package that does not exist is refused and nothing is left', async () => {
    const result = await user.skep(['run', 'npx://@modelcontextprotocol/no-such-package-of-anyone']);
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('was not found') });
    expect(user.leftFiles().filter((name) => /(statuses|runconfigs|packages)\/.+/.test(name))).toEqual([]);
  });
});

/** Answers like a supervisor of another version; tells whether it was asked to retire. */
async function otherVersion({ env, dir }: TestUser): Promise<() => boolean> {
  let retired = false;
  const [state, data] = ['state/skep', 'data/skep'].map((name) => realpathSync(path.join(dir, name)));
  const self = { pid: process.pid, started: '1', state };
  const folder = path.join(env['XDG_STATE_HOME'] ?? '', 'skep/supervisor');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const socketPath = path.join(folder, 'other.sock');
  writeFileSync(path.join(folder, 'address.json'), JSON.stringify({ ...self, socket: socketPath }));
  const server = net.createServer((socket) => {
    socket.write(`${JSON.stringify({ skep: 'supervisor', version: '0.0.1', ...self, data })}\n`);
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      if (!String(chunk).includes('"retire"')) return;
      retired = true;
      socket.end(`${JSON.stringify({ result: { ending: true } })}\n`);
      server.close();
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return () => retired;
}
