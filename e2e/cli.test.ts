import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { programFile } from './registry/process.ts';
import { openUser, skepEntry, type TestUser } from './skep.ts';

let user: TestUser;
beforeAll(() => {
  // No engine and no sandbox: everything here must work, or fail, without one.
  user = openUser({ SKEP_RUNTIME: 'docker', DOCKER_HOST: 'unix:///nonexistent/engine.sock' });
});
afterAll(() => user.end());

function file(name: string, content: string): string {
  const target = path.join(user.dir, name);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, content);
  return target;
}

describe('help and version', () => {
  test('version prints one line', async () => {
    expect(await user.skep(['version'])).toEqual({ code: 0, stdout: 'skep 0.1.0\n', stderr: '' });
  });
  test('version --format json is data', async () => {
    const { stdout } = await user.skep(['version', '--format', 'json']);
    expect(JSON.parse(stdout)).toMatchObject({ version: '0.1.0' });
  });
  test('without a command, help on stdout shows the commands in groups, not the hidden ones', async () => {
    const { code, stdout } = await user.skep([]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Run servers\n {2}run/);
    expect(stdout).not.toContain('supervise');
  });
  test.each([
    'run',
    'list',
    'status',
    'stop',
    'start',
    'rm',
    'logs',
    'export',
    'search',
    'completion',
    'version',
  ])('%s --help says how to use it', async (command) => {
    const { code, stdout, stderr } = await user.skep([command, '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`Usage: skep ${command}`);
  });
  test.each(['bash', 'zsh', 'fish'])('completion %s prints a script', async (shell) => {
    const { code, stdout } = await user.skep(['completion', shell]);
    expect(code).toBe(0);
    expect(stdout).toContain('skep');
  });
  test('a completion offers the commands', async () => {
    const { stdout } = await user.skep(['complete', '--', 'sta']);
    expect(stdout).toContain('status');
    expect(stdout).toContain('start');
  });
});

describe.skipIf(!existsSync('/dev/full'))(
  'output that cannot be written is said in one line, and fails',
  () => {
    const into = (place: string, file: string, args: readonly string[]) => {
      const stdout = openSync(place, 'w');
      try {
        const command = [...process.execArgv, file, ...args];
        return spawnSync(process.execPath, command, {
          env: user.env,
          stdio: ['ignore', stdout, 'pipe'],
          encoding: 'utf8',
        });
      } finally {
        closeSync(stdout);
      }
    };
    const FULL =
      'Error: cannot write to standard output: its disk is full (ENOSPC); free space on it, then try again\n';

    test.each([
      ['skep', ['version']],
      ['skep', ['--help']],
      ['skep', ['search', 'git']],
      ['skep', ['registry', 'list', '--format', 'json']],
      ['skep-registry', ['version']],
      ['skep-registry', ['--help']],
    ])('%s %j', (program, args) => {
      const file = program === 'skep' ? skepEntry() : programFile();
      expect(into('/dev/full', file, args)).toMatchObject({ status: 1, stderr: FULL });
      expect(into('/dev/null', file, args)).toMatchObject({ status: 0, stderr: '' });
    });

    test('what a program says that fails stays what it says', () => {
      const { status, stderr } = into('/dev/full', programFile(), ['validate']);
      expect({ status, stderr }).toEqual({
        status: 1,
        stderr: expect.stringMatching(/^Error: nothing to check: [^\n]*\n$/),
      });
    });

    test('a pager that was closed is no failure', () => {
      for (const file of [skepEntry(), programFile()]) {
        const line = '"$0" "$1" --help | true; exit "${PIPESTATUS[0]}"';
        expect(
          spawnSync('bash', ['-c', line, process.execPath, file], { env: user.env, encoding: 'utf8' }),
        ).toMatchObject({
          status: 0,
          stderr: '',
        });
      }
    });
  },
);

describe('what is wrong is said in one line with a hint, exit 1', () => {
  test.each<[string[], string, string]>([
    [['lits'], 'Error: unknown command "skep lits"', 'did you mean "list"?'],
    [['config', 'fetch'], 'Error: unknown command "skep config fetch"', ''],
    [['run', '--nmae', 'x', 'y'], 'Error: unknown flag "--nmae"', 'did you mean "--name"?'],
    [['run'], 'Error: missing argument SERVER', ''],
    [['run', 'a', 'b'], 'Error: unexpected argument "b"', 'after --'],
    [['run', 'x', '--transport', 'carrier-pigeon'], 'invalid value "carrier-pigeon" for --transport', ''],
    [['run', 'x', '--runtime', 'firecracker'], 'invalid value "firecracker" for --runtime', 'kubernetes'],
    [['run', 'everything', '--name', '../x'], 'invalid workload name', ''],
    [
      ['run', 'everything', '-v', '/nowhere-at-all:/x'],
      'volume source path does not exist: "/nowhere-at-all"',
      '',
    ],
    [['run', 'everything', '-v', '/tmp'], 'invalid volume format: "/tmp"', ''],
    [['run', 'everything', '--permission-profile', './no.json'], 'permission profile', ''],
    [['run', 'everything', '-e', '=x'], 'empty', ''],
    [['run', 'everything', '-p', '1:2:3'], 'invalid port specification: "1:2:3"', ''],
    [['run', 'everything', '--host', '1.2.3.999'], 'invalid host: "1.2.3.999"', ''],
    [['run', 'everything', '--group', 'team'], "group 'team' does not exist", ''],
    [['run', 'everything', '-l', 'a b=c'], 'invalid label "a b=c"', ''],
    [['run', 'ftp://x'], 'invalid protocol scheme: "ftp://"', 'npx://'],
    [['run', 'npx://;reboot'], 'invalid package reference', ''],
    [['run', '--from-config', 'nowhere.json'], 'run configuration', 'check the path'],
    [
      ['run', '--from-config', 'x.json', '--name', 'y'],
      'cannot be used with other configuration flags: --name',
      '',
    ],
    [['status', 'nobody'], 'workload "nobody" not found', ''],
    [['export', 'nobody', 'x.json'], 'workload "nobody" not found', ''],
    [['stop'], 'at least one workload name must be provided', '--all'],
    [['rm', 'x', '--all'], 'no arguments should be provided', ''],
    [['list', '--format', 'xml'], 'invalid value "xml" for --format', ''],
    [['completion', 'tcsh'], 'unknown shell "tcsh"', 'bash, zsh, fish'],
  ])('skep %j', async (args, message, hint) => {
    const { code, stdout, stderr } = await user.skep(args);
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
    expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2);
  });
  test('an engine that is not there', async () => {
    const { code, stderr } = await user.skep(['run', 'everything']);
    expect(code).toBe(1);
    expect(stderr).toContain('/nonexistent/engine.sock');
  });
  test.each([
    ['not JSON', '{', 'is not valid JSON'],
    ['the wrong shape', '[]', 'is not a run configuration'],
    ['an unknown transport', '{"name":"ab","image":"x/y","transport":"smoke"}', '"transport"'],
    ['a hostile name', '{"name":"../../etc/x","image":"x/y","transport":"stdio"}', '"name"'],
    [
      'protection that is not available',
      '{"name":"ab","image":"x/y","transport":"stdio","authz_config":{"a":1}}',
      '"authz_config"',
    ],
    [
      'protection written as a list of steps',
      '{"name":"ab","image":"x/y","transport":"stdio","middleware_configs":[{"type":"authorization","parameters":{}}]}',
      '"middleware_configs"',
    ],
    [
      'a key that nobody knows',
      '{"name":"ab","image":"x/y","transport":"stdio","evil":1}',
      '"evil": unknown key',
    ],
  ])('an import with %s', async (_, content, message) => {
    const { code, stderr } = await user.skep(['run', '--from-config', file('import.json', content)]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(message) });
  });
  test('nothing was started or saved by any of them', () => {
    expect(user.supervisors()).toEqual([]);
    expect(
      user.leftFiles().filter((name) => /statuses|runconfigs/.test(name) && name.endsWith('.json')),
    ).toEqual([]);
  });
});

describe('the catalogue', () => {
  test('search finds by text and prints data as JSON', async () => {
    const { code, stdout } = await user.skep(['search', 'everything', '--format', 'json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toContainEqual(
      expect.objectContaining({ name: expect.stringMatching(/\/everything$/) }),
    );
  });
  test('search without a match says so', async () => {
    expect(await user.skep(['search', 'zzzz-nothing'])).toMatchObject({
      code: 0,
      stdout: 'No servers found matching query: zzzz-nothing\n',
    });
  });
  test('registry list and info show the built-in catalogue', async () => {
    const { stdout } = await user.skep(['registry', 'list', '--format', 'json']);
    const names = (JSON.parse(stdout) as { name: string }[]).map((one) => one.name);
    expect(names.length).toBeGreaterThanOrEqual(15);
    const info = await user.skep(['registry', 'info', names[0] ?? '']);
    expect(info.stdout).toContain(names[0]);
  });
  test('a file can be the catalogue; a broken one is refused and changes nothing', async () => {
    const server = { name: 'com.example/one', version: '1.0.0', description: 'One', packages: [] };
    const good = file('catalogue.json', JSON.stringify([server]));
    expect((await user.skep(['config', 'set-registry', good])).code).toBe(0);
    expect((await user.skep(['config', 'get-registry'])).stdout).toBe(`${good} (local file)\n`);
    expect((await user.skep(['search', 'one'])).stdout).toContain('com.example/one');
    const broken = await user.skep(['config', 'set-registry', file('broken.json', '{"servers":')]);
    expect(broken.code).toBe(1);
    expect(broken.stderr).toContain('broken.json" is not valid JSON: line 1, column');
    expect((await user.skep(['config', 'get-registry'])).stdout).toBe(`${good} (local file)\n`);
    expect((await user.skep(['config', 'unset-registry'])).code).toBe(0);
    expect((await user.skep(['config', 'get-registry'])).stdout).toBe('built-in catalogue\n');
  });
  test('comments of the configuration file stay', async () => {
    file('config/skep/config.yaml', '# mine\nallow_private_registry_ip: true # yes\n');
    await user.skep(['config', 'unset-registry']);
    expect(readFileSync(path.join(user.dir, 'config/skep/config.yaml'), 'utf8')).toContain('# mine');
  });
  test('an unknown key of the configuration file is refused with file and line', async () => {
    file('config/skep/config.yaml', 'registry_ulr: x\n');
    const { code, stderr } = await user.skep(['search', 'x']);
    file('config/skep/config.yaml', '');
    expect(code).toBe(1);
    expect(stderr).toContain('config.yaml:1:1: unknown key "registry_ulr"');
    expect(stderr).toContain('did you mean "registry_url"?');
  });
});

describe('a registry that speaks the API', () => {
  let server: http.Server;
  let base: string;
  let broken = false;
  beforeAll(async () => {
    const document = {
      name: 'com.example/far',
      version: '1.0.0',
      description: 'Far',
      remotes: [{ type: 'streamable-http', url: 'https://example.com/mcp' }],
    };
    server = http.createServer((request, response) => {
      const url = request.url ?? '';
      if (broken) {
        response.writeHead(500).end('down');
        return;
      }
      response.setHeader('content-type', 'application/json');
      if (url.includes('/versions/latest')) {
        const known = decodeURIComponent(url).includes('com.example/far/');
        response.writeHead(known ? 200 : 404);
        response.end(JSON.stringify(known ? { server: document } : { error: 'no' }));
        return;
      }
      response.end(JSON.stringify({ servers: [{ server: document }], metadata: { count: 1 } }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    base = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  });
  afterAll(async () => {
    await user.skep(['config', 'unset-registry']);
    await new Promise((resolve) => server.close(resolve));
  });

  test('a private address needs --allow-private-ip', async () => {
    const { code, stderr } = await user.skep(['config', 'set-registry', base]);
    expect(code).toBe(1);
    expect(stderr).toContain('--allow-private-ip');
  });
  test('is recognised, searched, and its remote servers are told apart from images', async () => {
    expect((await user.skep(['config', 'set-registry', base, '--allow-private-ip'])).code).toBe(0);
    expect((await user.skep(['config', 'get-registry'])).stdout).toBe(`${base} (API endpoint)\n`);
    expect((await user.skep(['search', 'far'])).stdout).toContain('com.example/far');
    expect((await user.skep(['registry', 'info', 'far'])).stdout).toContain('com.example/far');
  });
  test('a registry that is down never turns a name into an image', async () => {
    broken = true;
    const { code, stderr } = await user.skep(['registry', 'info', 'com.example/far']);
    broken = false;
    expect(code).toBe(1);
    expect(stderr).toContain('500');
  });
});

test('list without workloads is quiet and starts nothing', async () => {
  expect(await user.skep(['list'])).toEqual({ code: 0, stdout: 'No MCP servers found\n', stderr: '' });
  expect((await user.skep(['list', '--format', 'json'])).stdout).toBe('[]\n');
  expect((await user.skep(['list', '--format', 'mcpservers'])).stdout).toBe('{\n  "mcpServers": {}\n}\n');
  expect(user.supervisors()).toEqual([]);
});

test('asking for what is not there starts no supervisor', async () => {
  const gone = expect.stringContaining('workload "nobody" not found');
  expect(await user.skep(['stop', 'nobody'])).toEqual({ code: 0, stdout: '', stderr: gone });
  expect(await user.skep(['rm', 'nobody'])).toEqual({ code: 0, stdout: '', stderr: gone });
  for (const command of ['start', 'logs', 'status']) {
    expect(await user.skep([command, 'nobody'])).toEqual({ code: 1, stdout: '', stderr: gone });
  }
  expect(await user.skep(['stop', '--all'])).toMatchObject({ code: 0 });
  expect([...user.supervisors(), ...user.watchers()]).toEqual([]);
  expect(user.leftFiles().filter((name) => name.includes('supervisor'))).toEqual([]);
});
