import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  commandUnderTest,
  openCommandUnderTest,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';

/** What a file has to say at least, and may. */
const PLAIN = {
  schema_version: 'v0.1.0',
  name: 'a1',
  image: 'fake:1',
  transport: 'stdio',
  port: 0,
  host: '127.0.0.1',
  permission_profile: { read: [], write: [], network: { outbound: { insecure_allow_all: true } } },
};
const CORRECT = 'correct the named key, or export the workload again';
const LEAVE_OUT = 'remove the key if the workload may run without';

let machine: CommandUnderTest;
beforeAll(async () => {
  machine = await openCommandUnderTest();
});
afterAll(() => machine.close());

/** The file `x` with these members, refused. */
async function refused(content: unknown): Promise<string> {
  await machine.write('x', JSON.stringify(content));
  // Where it stands in the file is tested in run-config.test.ts.
  return (await machine.refusal('run --from-config x')).replace(/ at line 1, column \d+/, '');
}

describe('a file that is no run configuration is refused with the key that is wrong', () => {
  test.each<[object | number | string | null, string]>([
    [3, 'must be an object'],
    ['text', 'must be an object'],
    [null, 'must be an object'],
    [[], 'must be an object'],
    [{ ...PLAIN, name: undefined }, '"name": is missing'],
    [{ ...PLAIN, name: '../x' }, '"name": not a workload name'],
    [{ ...PLAIN, image: undefined }, '"image": is missing'],
    [{ ...PLAIN, image: 3 }, '"image": must be text'],
    [{ ...PLAIN, transport: 'http' }, '"transport": must be one of stdio, sse, streamable-http'],
    [{ ...PLAIN, transport: 'streamable-http' }, '"target_port": is missing'],
    [{ ...PLAIN, port: 70_000 }, '"port": must be a whole number from 0 to 65535'],
    [{ ...PLAIN, port: -1 }, '"port": must be a whole number from 0 to 65535'],
    [{ ...PLAIN, port: '80' }, '"port": must be a whole number from 0 to 65535'],
    [{ ...PLAIN, schema_version: 'v9.9.9' }, '"schema_version": written by a newer release'],
    [{ ...PLAIN, host: '[::1]' }, '"host": is not an IP address as URLs have it'],
    [{ ...PLAIN, host: 'localhost' }, '"host": is not an IP address as URLs have it'],
    [{ ...PLAIN, target_host: 'a b' }, '"target_host": is not a host name'],
    [{ ...PLAIN, env_vars: { '1A': 'x' } }, '"env_vars.1A": is not a variable name'],
    [{ ...PLAIN, env_vars: { A: 1 } }, '"env_vars.A": must be text'],
    [{ ...PLAIN, cmd_args: 'x' }, '"cmd_args": must be a list'],
    [{ ...PLAIN, publish: ['x'] }, '"publish.0": is not hostPort:containerPort'],
    [{ ...PLAIN, debug: 'x' }, '"debug": must be true or false'],
    [{ ...PLAIN, memory: '1 lot' }, '"memory": is no such limit'],
    [{ ...PLAIN, sandbox_user: 'x' }, '"sandbox_user": is not root, UID or UID:GID'],
    [{ ...PLAIN, request_timeout: 'soon' }, '"request_timeout": is not a duration such as 30s or 2m30s'],
    [{ ...PLAIN, ignore_config: { load_global: 'x' } }, '"ignore_config.load_global": must be true or false'],
    [{ ...PLAIN, permission_profile: { read: 3 } }, '"permission_profile.read": must be a list'],
    [
      { ...PLAIN, permission_profile: {}, permission_profile_name_or_path: 'mine' },
      '"permission_profile": is missing, and "mine" is not one that Skep knows',
    ],
    [
      { ...PLAIN, volumes: ['/tmp:/x:ro'] },
      '"volumes": "/tmp:/x:ro" is not in "permission_profile.read", which says what is mounted',
    ],
    [
      { ...PLAIN, volumes: ['volume://b:/x'], permission_profile: { write: ['volume://a:/x'] } },
      '"volumes": "volume://b:/x" is not in "permission_profile.write", which says what is mounted',
    ],
  ])('%j', async (content, message) => {
    expect(await refused(content)).toBe(`Error: "x" is not a run configuration: ${message}; ${CORRECT}\n`);
  });

  test.each<[object, string]>([
    [
      { nonsense: 1 },
      '"x" is not a run configuration: "nonsense": unknown key; remove it, or correct its name',
    ],
    [{ group: 'team' }, "group 'team' does not exist; create it with skep group create team"],
    [{ group: '../team' }, `"x" is not a run configuration: "group": not a group name; ${CORRECT}`],
    [
      { audit_config: { version: '1' } },
      `"x" is not a run configuration: "audit_config": has an unknown key: "version"; ${CORRECT}`,
    ],
    [
      { upstream_swap_config: {} },
      `"x" uses "upstream_swap_config", which is not available yet; ${LEAVE_OUT}`,
    ],
    [
      { container_labels: { 'bad key': 'x' } },
      '"x" is not a run configuration: "container_labels.bad key": is not a label; keys and values have up to 63 letters, digits, dots, dashes and underscores',
    ],
    [
      { package: { kind: 'package', ecosystem: 'npm', name: 'a;b' } },
      'invalid package reference "npx://a;b": "a;b" is no npm package name; write it like npx://@scope/name@1.2.3',
    ],
    [
      { secret_env: ['TOKEN'] },
      'missing required environment variable: TOKEN; give it in the environment, as SKEP_SECRET_TOKEN',
    ],
    [
      { endpoint_prefix: 'x' },
      '"x" is not a run configuration: "endpoint_prefix": is not a path that begins with "/"; correct the named key, or export the workload again',
    ],
  ])('%j', async (more, message) => {
    expect(await refused({ ...PLAIN, ...more })).toBe(`Error: ${message}\n`);
  });

  test.each([
    ['run --from-config absent', 'run configuration "WORK/absent" does not exist; check the path'],
    [
      'run --from-config .',
      'run configuration "WORK" is not a regular file; name a file, not a directory or device',
    ],
    [
      'run --from-config ok --name x',
      '--from-config cannot be used with other configuration flags: --name; edit the file instead',
    ],
    [
      'run --from-config ok --no-check -e A=b',
      '--from-config cannot be used with other configuration flags: --no-check, --env; edit the file instead',
    ],
    [
      'run --from-config ok fake:1',
      '--from-config cannot be used with other configuration flags: fake:1; edit the file instead',
    ],
    [
      'run --from-config ok -- one',
      '--from-config cannot be used with other configuration flags: --; edit the file instead',
    ],
    [
      'run --from-config',
      'the flag "--from-config" needs a value; run the command with --help to see its arguments',
    ],
  ])('%s', async (line, message) => {
    await machine.write('ok', PLAIN);
    expect(await machine.refusal(line)).toBe(`Error: ${message}\n`);
  });

  test('text that is no JSON, with the place', async () => {
    await machine.write('x', '{"name": "a1",\n  oops}');
    expect(await machine.refusal('run --from-config x')).toBe(
      'Error: run configuration "WORK/x" is not valid JSON at line 2, column 3; correct the file at the named place\n',
    );
  });
});

const WIDE = {
  ...PLAIN,
  host: '0.0.0.0',
  permission_profile: { privileged: true, read: ['/etc'], network: { mode: 'host' } },
};

describe('what a file gives away of this machine', () => {
  test('is refused while nobody grants it, each part by name', async () => {
    const skep = await commandUnderTest({ files: { x: WIDE } });
    const said = await skep.refusal('run --from-config x');
    for (const grant of [
      'read "/etc"',
      'run privileged',
      'use the network "host"',
      'listen on 0.0.0.0, which other machines can reach',
    ]) {
      expect(said).toContain(grant);
    }
    expect(said).toMatch(/which is not granted; read the file; to allow it, add --trust-config\n$/);
  });

  test('is asked for at a terminal, and a no ends it', async () => {
    const skep = await commandUnderTest({ files: { x: WIDE } });
    expect(await skep.refusal('run --from-config x', { agrees: false })).toContain('which is not granted');
    expect(skep.asked).toHaveLength(1);
    await skep.output('run --from-config x', { agrees: true });
  });

  test('is told where --trust-config grants it', async () => {
    const skep = await commandUnderTest({ files: { x: WIDE } });
    const { status, err } = await skep.run('run --from-config x --trust-config');
    expect(status).toBe(0);
    expect(err).toContain('Granted: read "/etc"\n');
    expect(err).toContain('Warning: listening on 0.0.0.0: ');
  });

  test('is nothing for a file that gives nothing away', async () => {
    const skep = await commandUnderTest({ files: { x: PLAIN } });
    await skep.output('run --from-config x', { agrees: false });
    expect(skep.asked).toEqual([]);
  });
});

describe('what is exported', () => {
  const FLAGS = '-e MODE=fast -l team=core -p 8081:81';

  test('runs the same elsewhere: name, variables, labels, arguments, ports and mounts', async () => {
    const here = await commandUnderTest();
    await here.output(`run npx://fake --name a1 ${FLAGS} -v .:/data:ro --trust-proxy-headers -- one --two`);
    const text = await here.output('export a1 -');
    const there = await commandUnderTest({ files: { x: text } });
    await there.output('run --from-config x --trust-config');
    expect(await there.output('export a1 -')).toBe(text);
  });

  test('is the same text after it came from ToolHive and went there and back', async () => {
    const x = {
      schema_version: 'v0.1.0',
      name: 'a1',
      container_name: 'a1',
      base_name: 'a1',
      image: 'fake:1',
      cmd_args: ['--root', '/notes'],
      transport: 'stdio',
      proxy_mode: 'streamable-http',
      host: '127.0.0.1',
      port: 0,
      env_vars: { MCP_TRANSPORT: 'stdio', TZ: 'UTC' },
      secrets: [],
      container_labels: { toolhive: 'true', 'toolhive-name': 'a1', 'toolhive-port': '5', team: 'blue' },
      group: 'default',
      permission_profile: { name: 'network', network: { outbound: { insecure_allow_all: true } } },
      isolate_network: false,
      allow_docker_gateway: false,
      ignore_config: { LoadGlobal: true, PrintOverlays: false },
      stateless: true,
      telemetry_config: { serviceName: 'n' },
    };
    const here = await commandUnderTest({ files: { x } });
    await here.output('run --from-config x');
    const text = await here.output('export a1 -');
    expect(JSON.parse(text)).toMatchObject({
      cmd_args: x.cmd_args,
      env_vars: { TZ: 'UTC' },
      container_labels: { toolhive: 'true', 'toolhive-name': 'a1', team: 'blue' },
      ignore_config: { load_global: true },
      stateless: true,
      telemetry_config: x.telemetry_config,
    });
    await here.output('rm a1');
    await here.write('y', text);
    await here.output('run --from-config y');
    expect(await here.output('export a1 -')).toBe(text);
  });

  test('lies in a file for this user alone, or goes to the terminal', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    expect(await skep.output('export a1 sub.json')).toBe(
      "Successfully exported run configuration for 'a1' to 'sub.json'\n",
    );
    expect(await skep.read('sub.json')).toBe(await skep.output('export a1 -'));
    await skep.output('stop a1');
    expect(await skep.output('export a1 -')).toBe(await skep.read('sub.json'));
    for (const path of [join(skep.cwd, 'sub.json'), join(skep.places.runConfigsDir, 'a1.json')])
      expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test('goes to a cluster as its resource, with what is to be done there', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1 --publish 8099:80');
    const { out, err } = await skep.run('export a1 - --format k8s');
    expect(out).toContain('kind: MCPServer\n');
    expect(err).toBe('Not in it, because the resource has no field for it: --publish.\n');
  });

  test('names secrets without their values, which come from the environment or the person', async () => {
    const skep = await commandUnderTest({ files: { x: { ...PLAIN, secret_env: ['TOKEN'] } } });
    await skep.output('run --from-config x', { env: { SKEP_SECRET_TOKEN: 'hunter2' } });
    const exported = await skep.output('export a1 -');
    expect(exported).not.toContain('hunter2');
    expect(JSON.parse(exported)).toMatchObject({ secret_env: ['TOKEN'] });
    await skep.output('rm a1');
    await skep.output('run --from-config x', { answers: { TOKEN: 'hunter2' } });
    expect(skep.asked).toEqual(['TOKEN']);
  });

  test.each([
    ['export', 'missing argument NAME; run the command with --help to see its arguments'],
    ['export a1', 'missing argument PATH; run the command with --help to see its arguments'],
    ['export missing x.json', 'workload "missing" not found; see the names with skep list --all'],
    [
      'export --format yaml a1 -',
      'invalid value "yaml" for --format: it must be one of json, k8s, seatbelt; run the command with --help to see what is accepted',
    ],
  ])('%s is refused', async (line, message) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal(line)).toBe(`Error: ${message}\n`);
  });

  test('is told when it cannot be written', async () => {
    const skep = await commandUnderTest({ files: { file: 'in the way' } });
    await skep.output('run fake:1 --name a1');
    expect(await skep.refusal('export a1 file/x.json')).toMatch(/^Error: .*file.*\n$/);
  });
});

describe('a file meets what is there already', () => {
  test('a name that is taken is told with the way to put it right in the file', async () => {
    const skep = await commandUnderTest({ files: { x: PLAIN } });
    await skep.output('run fake:1 --name a1');
    expect(await skep.refusal('run --from-config x')).toBe(
      'Error: workload with name \'a1\' already exists; give it another "name" in the file, or remove it with skep rm a1\n',
    );
  });

  test('a port that is busy is told in the same way', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const skep = await commandUnderTest({ files: { x: { ...PLAIN, port } } });
    expect(await skep.refusal('run --from-config x')).toBe(
      `Error: requested proxy port ${port} is not available: another program listens there; set another "port" in the file, or 0 for a free one\n`,
    );
  });

  test('an image that is not here is fetched, and one that is nowhere leaves nothing', async () => {
    const skep = await commandUnderTest({ files: { x: { ...PLAIN, image: 'absent:1' } } });
    expect(await skep.refusal('run --from-config x')).toMatch(/Pulling absent:1\nError: .*; .*\n$/);
  });

  test('what the ignore file names is hidden from its mounts, unless the file says otherwise', async () => {
    for (const [load_global, overlays] of [
      [true, ['/data/.env']],
      [false, undefined],
    ] as const) {
      const profile = { read: ['.:/data'] };
      const x = { ...PLAIN, permission_profile: profile, ignore_config: { load_global } };
      const files = { x, '.env': 'TOKEN=1', '../.config/skep/skepignore': '.env\n' };
      const skep = await commandUnderTest({ files });
      await skep.output('run --from-config x --trust-config');
      expect(skep.runtime.specOf(PLAIN.name)?.overlays?.map(({ target }) => target)).toEqual(overlays);
    }
  });

  test('a server that crashes at its start is removed, and the file can be run again', async () => {
    const skep = await commandUnderTest({ files: { x: PLAIN }, greet: () => new Promise(() => {}) });
    skep.runtime.crash = { exitCode: 1, says: 'bye\n' };
    const { status, err } = await skep.run('run --from-config x');
    expect(status).toBe(1);
    expect(err).toContain('  bye\nError: the server of "a1" stopped right after it was started');
    expect(await skep.left()).toEqual({ saved: [], statuses: [], workloads: [] });
  });
});
