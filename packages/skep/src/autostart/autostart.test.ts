import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lookAtAutostart, turnOff, turnOn, type Starter } from './autostart.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-autostart-'));
});
afterEach(() => rm(home, { recursive: true }));

function starter(more: Partial<Starter> = {}): Starter {
  const program = { node: '/opt/node/bin/node', entry: '/opt/skep/skep.js', version: '1.0.0' };
  const env = { PATH: '/usr/bin:/bin', API_KEY: 'hunter2', XDG_STATE_HOME: '/state' };
  return { env, cwd: '/', home, homeOfUser: home, platform: 'linux', hasSystemd: true, program, ...more };
}

const files = async (): Promise<string[]> => (await readdir(home, { recursive: true })).toSorted();
const stateOf = async (given = starter()): Promise<string> => (await lookAtAutostart(given)).state;

test('on writes a unit that starts the supervisor with absolute paths, and no secret', async () => {
  const file = await turnOn(starter());
  expect(file).toBe(join(home, '.config/systemd/user/skep.service'));
  const text = await readFile(file, 'utf8');
  expect(text).toContain(
    '"/opt/node/bin/node" "--max-semi-space-size=4" "--" "/opt/skep/skep.js" "supervise"',
  );
  expect(text).toContain('Environment="PATH=/usr/bin:/bin"\nEnvironment="XDG_STATE_HOME=/state"\n');
  expect(text).not.toContain('hunter2');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readlink(join(dirname(file), 'default.target.wants/skep.service'))).toBe('../skep.service');
  expect(await stateOf()).toBe('on');
});

test('a password in the address of an engine is left out', async () => {
  const env = { DOCKER_HOST: 'tcp://user:hunter2@engine:2376', DOCKER_CONTEXT: 'remote' };
  const text = await readFile(await turnOn(starter({ env })), 'utf8');
  expect(text).toContain('DOCKER_CONTEXT=remote');
  expect(text).not.toContain('hunter2');
});

test('where secrets are is told, and no secret', async () => {
  const env = {
    SKEP_SECRETS_PROVIDER: 'encrypted',
    SKEP_SECRETS_PASSWORD_FILE: 'pass',
    SKEP_SECRETS_PASSWORD: 'hunter2',
  };
  const text = await readFile(await turnOn(starter({ env, cwd: '/home/ada' })), 'utf8');
  expect(text).toContain('SKEP_SECRETS_PROVIDER=encrypted');
  expect(text).toContain('SKEP_SECRETS_PASSWORD_FILE=/home/ada/pass');
  expect(text).not.toContain('hunter2');
});

test('off removes exactly what on made', async () => {
  const units = join(home, '.config/systemd/user');
  await mkdir(join(units, 'default.target.wants'), { recursive: true });
  await writeFile(join(units, 'other.service'), '');
  const before = await files();
  await turnOn(starter());
  expect(await turnOff(starter())).toBe(join(units, 'skep.service'));
  expect(await files()).toEqual(before);
  expect(await turnOff(starter())).toBeUndefined();
});

test('on twice is on, and after an update of Node it is written anew', async () => {
  await turnOn(starter());
  const moved = starter({ program: { ...starter().program, node: '/opt/newer/node' } });
  expect(await stateOf(moved)).toBe('outdated');
  await turnOn(moved);
  await turnOn(moved);
  expect(await stateOf(moved)).toBe('on');
});

test.each(['linux', 'darwin'] as const)(
  'a service that somebody changed is left alone on %s',
  async (platform) => {
    const given = starter({ platform });
    const file = await turnOn(given);
    const text = `${await readFile(file, 'utf8')}\n# mine\n`;
    await writeFile(file, text);
    expect(await stateOf(given)).toBe('changed');
    for (const change of [turnOn, turnOff])
      await expect(change(given)).rejects.toMatchObject({ code: 'autostart/changed' });
    expect(await readFile(file, 'utf8')).toBe(text);
  },
);

test('a link in the place of its own is left alone', async () => {
  const link = join(home, '.config/systemd/user/default.target.wants/skep.service');
  await mkdir(dirname(link), { recursive: true });
  await writeFile(link, 'mine');
  await expect(turnOn(starter())).rejects.toMatchObject({ code: 'autostart/changed' });
  expect(await readFile(link, 'utf8')).toBe('mine');
});

test('launchd gets an agent', async () => {
  const file = await turnOn(starter({ platform: 'darwin' }));
  expect(file).toBe(join(home, 'Library/LaunchAgents/dev.skep.supervisor.plist'));
  expect(await stateOf(starter({ platform: 'darwin' }))).toBe('on');
});

test.each([
  ['nothing that starts services', { hasSystemd: false }, 'supervise'],
  ['Windows', { platform: 'win32' as const }, 'supervise'],
  ['another home', { homeOfUser: '/home/other' }, 'HOME'],
])('%s is refused, and nothing is written', async (_, more, hint) => {
  await expect(turnOn(starter(more))).rejects.toMatchObject({
    code: 'autostart/unavailable',
    hint: expect.stringContaining(hint),
  });
  expect(await files()).toEqual([]);
});

test('where nothing starts services it is off, and said to be', async () => {
  expect(await stateOf(starter({ hasSystemd: false }))).toBe('unavailable');
});
