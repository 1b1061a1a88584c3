import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { configGrants } from './config-grants.ts';
import { readImport } from './plan-import.ts';

const minimal = { name: 'everything', image: 'mcp/everything:1', transport: 'stdio' };

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'skep-import-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** The configuration that a file with these members becomes, and what was said about it. */
async function imported(more: object, isolation: 'on' | 'off' = 'off') {
  const said: string[] = [];
  await writeFile(path.join(dir, 'x.json'), JSON.stringify({ ...minimal, ...more }));
  const terminal = { err: (text: string) => void said.push(text) };
  const places = { ignoreFile: path.join(dir, 'skepignore') };
  const { config } = await readImport('x.json', { cwd: dir, env: {}, places, terminal }, { isolation });
  return { config, said };
}

const invalid = { code: 'run/invalid-config' };

describe('the permission profile of an imported file', () => {
  test('cuts the network where it allows no connection, as --permission-profile does', async () => {
    for (const permission_profile of [
      { name: 'none', network: { outbound: { insecure_allow_all: false } } },
      { network: { mode: '', outbound: {} } },
    ]) {
      const { config } = await imported({ permission_profile });
      expect(config.permission_profile.network?.mode).toBe('none');
    }
  });
  test('is what its name says where the file holds none', async () => {
    for (const permission_profile of [undefined, null, {}]) {
      const file = { permission_profile_name_or_path: 'none', permission_profile };
      expect((await imported(file)).config.permission_profile.network?.mode).toBe('none');
    }
  });
  test('is never guessed where only a path of another machine is given', async () => {
    const file = { permission_profile_name_or_path: '/home/other/strict.json', permission_profile: null };
    await expect(imported(file)).rejects.toMatchObject(invalid);
  });
  test('that cuts the network leaves no server to reach over HTTP', async () => {
    const file = { transport: 'streamable-http', target_port: 80, permission_profile_name_or_path: 'none' };
    await expect(imported(file)).rejects.toMatchObject({ code: 'usage/conflict' });
  });
});

describe('the isolation of an imported file', () => {
  const none = { permission_profile_name_or_path: 'none' };
  test.each<[object, 'on' | 'off', boolean | undefined]>([
    [{ isolate_network: true }, 'off', true],
    [{ isolate_network: false }, 'on', false],
    [{}, 'on', true],
    [{}, 'off', undefined],
  ])('of %j with the setting %s is %s', async (more, setting, isolated) => {
    expect((await imported(more, setting)).config.isolate_network).toBe(isolated);
  });
  test('is kept with what another tool calls the gateway', async () => {
    const { config, said } = await imported({ isolate_network: true, allow_docker_gateway: true });
    expect(config).toMatchObject({ isolate_network: true, allow_runtime_gateway: true });
    expect(said).toEqual([]);
    expect(configGrants(config, dir)).toEqual(["connect to the container engine's gateway addresses"]);
  });
  test('lets a server without any connection be reached over HTTP', async () => {
    const file = { transport: 'streamable-http', target_port: 80, ...none, isolate_network: true };
    expect((await imported(file)).config.permission_profile.network?.mode).toBeUndefined();
  });
  test('is an error on a network that is not its own', async () => {
    const file = { isolate_network: true, permission_profile: { network: { mode: 'host' } } };
    await expect(imported(file)).rejects.toMatchObject({ code: 'usage/conflict' });
  });
});

describe('volumes of an imported file', () => {
  const permission_profile = { read: ['/srv:/data'], write: ['/out:/out'] };
  test('may repeat what its profile mounts', async () => {
    const volumes = ['/srv:/data:ro', './elsewhere:/out'];
    const { config } = await imported({ permission_profile, volumes });
    expect(config.permission_profile).toMatchObject({ read: ['/srv:/data'], write: ['/out:/out'] });
  });
  test.each([['/srv:/data'], ['/srv:/other:ro'], ['/home:/data:ro'], ['/out:/out:ro']])(
    'are never left out silently: %s',
    async (volume) => {
      await expect(imported({ permission_profile, volumes: [volume] })).rejects.toMatchObject(invalid);
      await expect(imported({ volumes: [volume] })).rejects.toThrow('permission_profile.');
    },
  );
});

describe('a file from anywhere', () => {
  test.each<[string, object]>([
    ['reads a file of the host', { permission_profile: { read: ['/etc/shadow:/x'] } }],
    ['writes the whole host', { permission_profile: { write: ['/:/host'] } }],
    ['reaches the engine', { permission_profile: { write: ['/var/run/docker.sock'] } }],
    ['climbs with dots', { permission_profile: { read: ['../../../../etc:/x'] } }],
    ['is privileged', { permission_profile: { privileged: true } }],
    ['uses the network of the host', { permission_profile: { network: { mode: 'host' } } }],
    ['uses the network of another', { permission_profile: { network: { mode: 'container:db' } } }],
    ['listens to other machines', { host: '0.0.0.0' }],
    [
      'calls this machine',
      {
        remote_url: 'http://127.0.0.1:1/',
        transport: 'sse',
        header_forward: { add_plaintext_headers: { A: 'b' } },
      },
    ],
    ['has somebody sign in', { remote_url: 'https://x.invalid/', transport: 'sse' }],
    ['listens on an address of the machine', { host: '192.0.2.1' }],
  ])('needs the person’s word when it %s', async (_, more) => {
    expect(configGrants((await imported(more)).config, dir)).toHaveLength(1);
  });
  test.each<[string, object, string]>([
    ['a name that climbs', { name: '../../x' }, '"name"'],
    ['a name that is a path', { name: '/etc/x' }, '"name"'],
    ['a name of dots', { name: 'a..b' }, '"name"'],
    ['a host name', { host: 'example.com' }, '"host"'],
    ['an address in brackets', { host: '[::]' }, '"host"'],
    ['an address of one network card', { host: 'fe80::1%eth0' }, '"host"'],
    ['a port out of range', { port: 70_000 }, '"port"'],
    ['a variable that is no name', { env_vars: { 'LD PRELOAD': 'x' } }, '"env_vars'],
    ['NUL in an argument', { cmd_args: ['a\0b'] }, '"cmd_args.0"'],
    ['a group that cannot be', { group: '../other' }, '"group"'],
    ['no port to forward to', { transport: 'streamable-http' }, '"target_port"'],
    ['none, over SSE', { transport: 'sse' }, '"target_port"'],
    ['a server elsewhere over stdio', { remote_url: 'https://x.invalid' }, '"transport"'],
    ['no address of a server elsewhere', { remote_url: 'x.invalid' }, '"remote_url"'],
    ['headers for nobody', { header_forward: { add_plaintext_headers: { A: 'b' } } }, '"header_forward"'],
    ['a newer format', { schema_version: 'v1.0.0' }, '"schema_version"'],
  ])('is refused with %s', async (_, more, named) => {
    await expect(imported(more)).rejects.toMatchObject(invalid);
    await expect(imported(more)).rejects.toThrow(named);
  });
  test('may be of a server elsewhere, which has no rights here', async () => {
    const { config } = await imported({
      remote_url: 'https://x.invalid/mcp',
      transport: 'streamable-http',
      remote_allow_private_ip: true,
      permission_profile: { read: ['/etc'] },
    });
    expect(config).toMatchObject({ remote_url: 'https://x.invalid/mcp', permission_profile: {} });
    expect(config.remote_allow_private_ip).toBeUndefined();
    expect(configGrants(config, dir)).toEqual(['have you sign in where x.invalid says, if it wants that']);
  });
  test('does not say what its container is called, where it runs or what was derived', async () => {
    const runtime = { kind: 'docker', id: 'x', endpoint: '/x.sock' };
    const { config, said } = await imported({ container_name: '../../x', base_name: '-f', runtime });
    expect(config).toMatchObject({ name: 'everything', rest: {} });
    expect(said).toEqual([]);
  });
  test('has what is kept without effect said in one line', async () => {
    const { said } = await imported({ rate_limit_namespace: 'x' });
    expect(said).toEqual(['Warning: kept, but without effect yet: rate_limit_namespace\n']);
  });
  test('shows what ignore files hide of its mounts where it asks for that', async () => {
    const ignore = path.join(dir, 'skepignore');
    await writeFile(ignore, 'own-secret\n');
    await writeFile(path.join(dir, 'own-secret'), '');
    const file = { permission_profile: { read: [`${dir}:/data`] }, ignore_config: { print_overlays: true } };
    expect((await imported(file)).said.join('')).toContain('/data/own-secret is an empty file');
    await rm(ignore);
  });
});

const plain = { name: 'ab', image: 'x/y', transport: 'stdio' };

test.each<[object, readonly string[]]>([
  [{}, []],
  [{ host: '127.0.0.2', permission_profile: { network: { mode: 'bridge' } } }, []],
  [{ allowed_origins: ['https://a.example'] }, ['let web pages of https://a.example use the server']],
  [{ memory: '1g', cpus: '2', pids_limit: '64', disk: '100m' }, []],
  [{ memory: 'none', disk: '5g' }, ['use memory without a limit', 'use up to 5 GiB of disk']],
  [{ host: '0.0.0.0' }, ['listen on 0.0.0.0, which other machines can reach']],
  [
    {
      host: '192.0.2.1',
      permission_profile: { write: ['/:/host'], privileged: true, network: { mode: 'host' } },
    },
    [
      'write "/" (as "/host")',
      'run privileged, with all rights of the engine',
      'use the network "host"',
      'listen on 192.0.2.1, which other machines can reach',
    ],
  ],
])('a configuration with %j gives away what it says', (more, grants) => {
  expect(configGrants(decodeRunConfig({ ...plain, ...more }, 'f'), '/cwd')).toEqual(grants);
});
