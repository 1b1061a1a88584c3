import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  controlsIn,
  openCommandUnderTest,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';

/** One that runs, one over HTTP, and one that is stopped. */
async function threeServers(opening = commandUnderTest()): Promise<CommandUnderTest> {
  const skep = await opening;
  await skep.output('run fake:1 --name alpha -l team=core -l tier=one');
  await skep.output(
    'run example/tools:2 --name beta-with-a-longer-name --transport streamable-http --target-port 80',
  );
  await skep.output('run fake:1 --name gamma -l team=core');
  await skep.output('stop gamma');
  return skep;
}

const namesIn = (json: string): unknown =>
  (JSON.parse(json) as readonly { readonly name: string }[]).map(({ name }) => name);

/** For tests that only look. */
let servers: CommandUnderTest;
beforeAll(async () => {
  servers = await threeServers(openCommandUnderTest());
});
afterAll(() => servers.close());

describe('skep list', () => {
  test('shows what runs in columns that stand below each other', async () => {
    const [head = '', ...rows] = (await servers.output('list')).trimEnd().split('\n');
    expect(head.split(/ {2,}/)).toEqual(['NAME', 'PACKAGE', 'STATUS', 'URL', 'PORT', 'GROUP', 'CREATED']);
    expect(rows.map((row) => row.split(/ {2,}/).slice(0, 3))).toEqual([
      ['alpha', 'fake:1', 'running'],
      ['beta-with-a-longer-name', 'example/tools:2', 'running'],
    ]);
    for (const column of ['PACKAGE', 'STATUS', 'URL', 'PORT', 'GROUP']) {
      const at = head.indexOf(column);
      for (const row of rows) expect(row.slice(at - 3, at + 1)).toMatch(/^ {3}\S$/);
    }
    for (const line of [head, ...rows]) expect(line).not.toMatch(/\s$/);
  });

  test('shows the beginning of a digest to a person, and all of it to a script', async () => {
    const image = `example/tools:2@sha256:${'0123456789abcdef'.repeat(4)}`;
    const skep = await commandUnderTest({ runtime: new MemoryRuntime({ [image]: idle }) });
    await skep.output(`run ${image} --name a1`);
    const terminal = { widthOut: 200, liveOut: true };
    expect(await skep.output('list', { terminal })).toContain('example/tools:2@sha256:0123456789ab   ');
    for (const line of ['list', 'list -o wide', 'list --format json']) {
      expect(await skep.output(line)).toContain(image);
    }
  });

  test.each([
    [60, ['NAME', 'STATUS', 'URL']],
    [80, ['NAME', 'STATUS', 'URL', 'AGE']],
    [120, ['NAME', 'PACKAGE', 'STATUS', 'URL', 'AGE']],
    [200, ['NAME', 'PACKAGE', 'STATUS', 'URL', 'AGE']],
  ])('fits a terminal of %d columns with %j, and nothing of a URL is cut', async (widthOut, columns) => {
    const urls = JSON.parse(await servers.output('list --all --format json')) as readonly { url: string }[];
    const shown = await servers.output('list --all', { terminal: { widthOut, liveOut: true } });
    const [head = '', ...rows] = shown.trimEnd().split('\n');
    expect(head.split(/ {2,}/)).toEqual(columns);
    for (const [index, row] of rows.entries()) {
      expect(row.length).toBeLessThanOrEqual(widthOut);
      expect(row).toContain(`   ${urls[index]?.url ?? '?'}`);
    }
  });

  test('shows all there is with -o wide, as to a file, and what was counted', async () => {
    const plain = await servers.output('list --all');
    const wide = await servers.output('list --all -o wide');
    const lines = plain.trimEnd().split('\n');
    for (const [at, line] of wide.trimEnd().split('\n').entries())
      expect(line.startsWith(lines[at] ?? '')).toBe(true);
    const terminal = { widthOut: 80, liveOut: true };
    expect(await servers.output('list --all -o wide', { terminal })).toBe(wide);
  });

  test('colours a state where there are colours', async () => {
    const terminal = { widthOut: 80, liveOut: true, colorOut: true };
    const shown = await servers.output('list --all', { terminal });
    expect(shown).toContain('\u001B[32mrunning\u001B[39m');
    expect(shown).toContain('\u001B[2mstopped\u001B[22m');
    expect(await servers.output('status alpha', { terminal })).toContain('\u001B[32mrunning\u001B[39m\n');
  });

  test('shows stopped ones with --all, and under its short name', async () => {
    expect(namesIn(await servers.output('list --format json'))).toEqual(['alpha', 'beta-with-a-longer-name']);
    const all = ['alpha', 'beta-with-a-longer-name', 'gamma'];
    expect(namesIn(await servers.output('list --all --format json'))).toEqual(all);
    expect(namesIn(await servers.output('ls -a --format=json'))).toEqual(all);
  });

  test.each([
    ['-l team=core', ['alpha', 'gamma']],
    ['--label team=core --label tier=one', ['alpha']],
    ['--label team=other', []],
    ['--group default', ['alpha', 'beta-with-a-longer-name', 'gamma']],
    ['--group other', []],
    ['--group default -l tier=one', ['alpha']],
  ])('chooses with %s', async (flags, names) => {
    expect(namesIn(await servers.output(`list --all --format json ${flags}`))).toEqual(names);
  });

  test('has one shape for scripts, with the keys in their order', async () => {
    const items = JSON.parse(await servers.output('list --all --format json')) as readonly object[];
    const shared = ['name', 'package', 'url', 'port', 'transport_type', 'proxy_mode', 'status'];
    expect(items.map((item) => Object.keys(item))).toEqual([
      [...shared, 'created_at', 'started_at', 'labels', 'group', 'front_url', 'tool_calls'],
      [...shared, 'created_at', 'started_at', 'group', 'front_url', 'tool_calls'],
      [...shared, 'created_at', 'started_at', 'labels', 'group', 'front_url', 'tool_calls'],
    ]);
    expect(items[0]).toMatchObject({
      name: 'alpha',
      package: 'fake:1',
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/) as unknown,
      transport_type: 'stdio',
      proxy_mode: 'streamable-http',
      status: 'running',
      labels: { team: 'core', tier: 'one' },
      group: 'default',
    });
  });

  test('gives clients what they read, by name', async () => {
    const { mcpServers } = JSON.parse(await servers.output('list --format mcpservers')) as {
      mcpServers: Record<string, unknown>;
    };
    expect(Object.keys(mcpServers)).toEqual(['alpha', 'beta-with-a-longer-name']);
    expect(Object.keys(mcpServers['alpha'] as object)).toEqual(['url', 'type']);
  });

  test('says so where there is nothing, and stays readable for scripts', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.output('list')).toBe('No MCP servers found\n');
    expect(await skep.output('list --group default')).toBe("No MCP servers found in group 'default'\n");
    expect(await skep.output('list --format json')).toBe('[]\n');
    expect(JSON.parse(await skep.output('list --format mcpservers'))).toEqual({ mcpServers: {} });
  });

  test('tells of a server that failed, which would otherwise just vanish', async () => {
    const skep = await threeServers();
    await writeStatus(skep, 'alpha', { status: 'error', process_id: 0 });
    const { out, err } = await skep.run('list');
    expect(out).not.toContain('alpha');
    expect(err).toBe('Not running: alpha (error); see skep list --all\n');
    expect((await skep.run('list --format json')).err).toBe('');
  });

  test('shows one whose files are damaged beside all others', async () => {
    const skep = await threeServers();
    await writeFile(join(skep.places.runConfigsDir, 'alpha.json'), '{"name": "alpha", ');
    const all = JSON.parse(await skep.output('list --all --format json')) as readonly {
      name: string;
      status: string;
      status_context?: string;
    }[];
    expect(all.map(({ status }) => status)).toEqual(['unknown', 'running', 'stopped']);
    expect(all[0]?.status_context).toMatch(/alpha\.json.*is not valid JSON/);
  });

  test('a label cannot steer the terminal', async () => {
    const skep = await threeServers();
    const path = join(skep.places.runConfigsDir, 'alpha.json');
    const config = JSON.parse(await skep.output('export alpha -')) as object;
    await writeFile(path, JSON.stringify({ ...config, image: '\u001B[2Jfake:1' }));
    for (const line of ['list', 'list --format json', 'status alpha', 'status alpha --format json']) {
      expect(controlsIn(await skep.output(line))).toEqual([]);
    }
  });
});

/** As the supervisor that has died since left it. */
async function writeStatus(skep: CommandUnderTest, name: string, change: object): Promise<void> {
  const path = join(skep.places.statusesDir, `${name}.json`);
  const time = '2026-01-02T03:04:05.000Z';
  const status = {
    status: 'running',
    created_at: time,
    updated_at: time,
    started_at: time,
    process_id: 1,
    process_started: 'long ago',
  };
  await writeFile(path, JSON.stringify({ ...status, ...change }));
}

describe('skep status', () => {
  test('shows one server, a fact a line', async () => {
    const lines = (await servers.output('status alpha')).trimEnd().split('\n');
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      'Name',
      'Status',
      'Package',
      'URL',
      'Port',
      'Transport',
      'Proxy Mode',
      'Server',
      'Tools',
      'Runs in',
      'Reads',
      'Writes',
      'Network',
      'Secrets',
      'Uses',
      'Group',
      'Created',
      'Uptime',
    ]);
    const column = lines[0]?.indexOf('alpha');
    for (const line of lines) expect(line.slice(0, column)).toMatch(/^[A-Z][A-Za-z ]*: +$/);
  });

  test('has one shape for scripts, with an uptime only while it runs', async () => {
    const keysOf = async (name: string): Promise<readonly string[]> =>
      Object.keys(JSON.parse(await servers.output(`status ${name} --format json`)) as object);
    const always =
      'name status package url port transport proxy_mode permissions refused may_lack server group front_url tool_calls'.split(
        ' ',
      );
    expect(await keysOf('alpha')).toEqual([...always, 'uptime']);
    expect(await keysOf('gamma')).toEqual(always);
  });

  test('says what is not kept of a permission profile', async () => {
    const skep = await commandUnderTest({
      files: { 'profile.json': { network: { outbound: { allow_host: ['example.com'] } } } },
    });
    await skep.output('run fake:1 --name alpha --permission-profile ./profile.json');
    expect(await skep.output('status alpha')).toMatch(/^Not Enforced: +the hosts and ports of its/m);
    expect(JSON.parse(await skep.output('status alpha --format json'))).toMatchObject({
      not_enforced: [expect.stringContaining('hosts and ports')],
    });
  });

  test.each([
    ['missing', 'Error: workload "missing" not found; see the names with skep list --all\n'],
    [
      'a/b',
      'Error: invalid workload name "a/b"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit\n',
    ],
  ])('refuses %s', async (name, message) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal(`status ${name}`)).toBe(message);
  });
});

describe('what a supervisor left that was killed', () => {
  test('is taken up before it is shown, and what still runs is not started again', async () => {
    const skep = await threeServers();
    await skep.killSupervisor();
    for (const line of ['list --format json', 'status alpha --format json']) {
      expect(await skep.output(line)).toContain('"status": "running"');
    }
    expect(skep.runtime.startsOf('alpha')).toBe(1);
  });

  test('is started again where it has ended since', async () => {
    const skep = await threeServers();
    await skep.killSupervisor();
    skep.runtime.end('alpha', 1);
    expect(JSON.parse(await skep.output('status alpha --format json'))).toMatchObject({ status: 'running' });
    expect(skep.runtime.startsOf('alpha')).toBe(2);
  });

  test('wakes nobody for what is stopped', async () => {
    const skep = await threeServers();
    await skep.output('stop --all');
    await skep.killSupervisor();
    await skep.output('list --all');
    expect(skep.runtime.startsOf('alpha')).toBe(1);
  });

  test('is finished where a removal was interrupted', async () => {
    const skep = await threeServers();
    await skep.killSupervisor();
    await writeStatus(skep, 'gamma', { status: 'removing' });
    await skep.output('list');
    expect(await skep.left()).toEqual({
      saved: ['alpha', 'beta-with-a-longer-name'],
      statuses: ['alpha', 'beta-with-a-longer-name'],
      workloads: ['alpha', 'beta-with-a-longer-name'],
    });
  });

  test('is shown as it is where one file is damaged, and the others are taken up', async () => {
    const skep = await threeServers();
    await skep.killSupervisor();
    await writeFile(join(skep.places.statusesDir, 'gamma.json'), 'not JSON');
    const all = JSON.parse(await skep.output('list --all --format json')) as readonly { status: string }[];
    expect(all.map(({ status }) => status)).toEqual(['running', 'running', 'unknown']);
  });
});
