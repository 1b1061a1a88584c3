import type { ExtensionPermissions } from '@skep/core/catalog/publisher-extension.ts';
import { describe, expect, test } from 'vitest';
import { builtinProfile } from '../permissions/profile.ts';
import { checkIsolation, checkReachable, planPermissions } from './plan-permissions.ts';

const nothing = {
  flag: undefined,
  catalogue: undefined,
  entry: '"x/y" of the catalogue',
  network: undefined,
  volumes: [],
  isolated: false,
  cwd: '/cwd',
};
const none = builtinProfile('none');

describe('the permission profile of a run', () => {
  test('is "network" when nobody says anything', async () => {
    expect(await planPermissions(nothing)).toMatchObject({ name: 'network' });
  });
  test('is the flag before the catalogue', async () => {
    const catalogue = { name: 'theirs', network: null };
    expect(await planPermissions({ ...nothing, catalogue })).toMatchObject({ name: 'theirs' });
    expect(await planPermissions({ ...nothing, catalogue, flag: none })).toMatchObject({ name: 'none' });
  });
  test('that allows no connection has no network', async () => {
    expect((await planPermissions({ ...nothing, flag: none })).network?.mode).toBe('none');
  });
  test('that lists hosts keeps its network', async () => {
    const catalogue = { network: { outbound: { allow_host: ['a.com'], allow_port: [443] } } };
    expect((await planPermissions({ ...nothing, catalogue })).network?.mode).toBeUndefined();
  });
  test('gives way to --network', async () => {
    expect((await planPermissions({ ...nothing, flag: none, network: 'bridge' })).network?.mode).toBe(
      'bridge',
    );
  });
  test('holds the volumes', async () => {
    const volumes = [{ source: '/a', target: '/b', readOnly: true }];
    expect(await planPermissions({ ...nothing, volumes })).toMatchObject({ read: ['/a:/b'], write: [] });
  });
  test('a bad mount of the catalogue is refused', async () => {
    await expect(planPermissions({ ...nothing, catalogue: { read: ['/a;b'] } })).rejects.toMatchObject({
      code: 'run/invalid-volume',
    });
  });
});

describe('what a catalogue asks of this machine', () => {
  const greedy = {
    write: ['/:/host'],
    read: ['/etc/shadow:/x'],
    privileged: true,
    network: { mode: 'host' },
  };
  test('is refused where nobody can be asked, naming all of it', async () => {
    await expect(planPermissions({ ...nothing, catalogue: greedy })).rejects.toMatchObject({
      code: 'run/not-granted',
      message:
        '"x/y" of the catalogue asks to read "/etc/shadow" (as "/x"), write "/" (as "/host"), run privileged, with all rights of the engine, use the network "host", which is not granted',
      hint: 'grant it with --permission-profile FILE, or run it without with --permission-profile network',
    });
  });
  test.each<[string, ExtensionPermissions]>([
    ['a mount', { read: ['/srv'] }],
    ['privileged mode', { privileged: true }],
    ['another container’s network', { network: { mode: 'container:db' } }],
  ])('is refused for %s alone', async (_, catalogue) => {
    await expect(planPermissions({ ...nothing, catalogue })).rejects.toMatchObject({
      code: 'run/not-granted',
    });
  });
  test('is what the person agreed to, and nothing when they did not', async () => {
    const asked: string[] = [];
    const answering = (yes: boolean) => async (question: string) => {
      asked.push(question);
      return yes;
    };
    const inputs = { ...nothing, catalogue: greedy };
    expect(await planPermissions({ ...inputs, confirm: answering(true) })).toMatchObject({
      write: ['/:/host'],
      privileged: true,
      network: { mode: 'host' },
    });
    await expect(planPermissions({ ...inputs, confirm: answering(false) })).rejects.toMatchObject({
      code: 'run/not-granted',
    });
    expect(asked).toHaveLength(2);
    expect(asked[0]).toContain('write "/"');
  });
  test('does not count where a flag decides', async () => {
    const volumes = [{ source: '/srv', target: '/data', readOnly: true }];
    const catalogue = { write: ['/home:/data'], network: { mode: 'host' } };
    expect(await planPermissions({ ...nothing, catalogue, volumes, network: 'bridge' })).toMatchObject({
      read: ['/srv:/data'],
      write: [],
      network: { mode: 'bridge' },
    });
    expect(await planPermissions({ ...nothing, catalogue: greedy, flag: none })).not.toHaveProperty(
      'privileged',
    );
  });
});

test('a server without network cannot be reached over HTTP', async () => {
  const profile = await planPermissions({ ...nothing, flag: none });
  expect(() => checkReachable(profile, 'streamable-http', { isolated: false })).toThrow(
    expect.objectContaining({ code: 'usage/conflict' }),
  );
  expect(() => checkReachable(profile, 'stdio', { isolated: false })).not.toThrow();
});

describe('an isolated workload', () => {
  const isolated = { ...nothing, isolated: true };
  test('keeps a network for its gateway, whatever its profile allows', async () => {
    expect((await planPermissions({ ...isolated, flag: none })).network?.mode).toBeUndefined();
  });
  test('is reached over HTTP, whatever its profile allows', async () => {
    const profile = await planPermissions({ ...isolated, network: 'none' });
    expect(profile.network?.mode).toBe('none');
    expect(() => checkReachable(profile, 'streamable-http', { isolated: true })).not.toThrow();
  });
  test.each(['host', 'mine', 'container:db'])('is refused on the network %s', async (network) => {
    const profile = await planPermissions({ ...isolated, network });
    expect(() => checkIsolation(profile, true, 'do so')).toThrow(
      expect.objectContaining({
        code: 'usage/conflict',
        message: `network isolation cannot be enforced on the network "${network}"`,
        hint: 'do so',
      }),
    );
    expect(() => checkIsolation(profile, false, 'do so')).not.toThrow();
  });
  test('is given private hosts of a catalogue by a person only', async () => {
    const catalogue = {
      network: { outbound: { allow_host: ['192.168.1.9', 'nas.local', 'api.example.com'] } },
    };
    await expect(planPermissions({ ...isolated, catalogue })).rejects.toMatchObject({
      code: 'run/not-granted',
      message: expect.stringContaining(
        'asks to connect to the private host "192.168.1.9", connect to the private host "nas.local", which',
      ),
    });
    await expect(planPermissions({ ...nothing, catalogue })).resolves.toBeDefined();
  });
});
