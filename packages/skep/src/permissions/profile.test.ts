import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeProfile, loadProfile, profileMounts, withVolumes } from './profile.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skep-profile-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

describe('--permission-profile', () => {
  test.each([
    ['none', false],
    ['stdio', false],
    ['network', true],
  ])('%s is built in', async (name, allowAll) => {
    const profile = await loadProfile(name, '/');
    expect(profile).toEqual({
      name: allowAll ? 'network' : 'none',
      network: { outbound: { insecure_allow_all: allowAll } },
    });
  });
  test('a file is read and checked', async () => {
    const path = await file('p.json', '{"read":["/a"],"network":{"mode":"none"}}');
    expect(await loadProfile(path, '/')).toEqual({ read: ['/a'], network: { mode: 'none' } });
  });
  test('every member that a profile may have is read', async () => {
    const whole = {
      name: 'mine',
      read: ['/a', '/b:/c', 'volume://notes:/n'],
      write: ['/d:/e'],
      privileged: true,
      network: {
        mode: 'bridge',
        outbound: {
          insecure_allow_all: false,
          allow_host: ['x.example', '.y.example', '10.0.0.1'],
          allow_port: [1, 443, 65_535],
        },
        inbound: { allow_host: ['a1', 'localhost'] },
      },
    };
    expect(await loadProfile(await file('whole.json', JSON.stringify(whole)), '/')).toEqual(whole);
    expect(await loadProfile(await file('empty.json', '{}'), '/')).toEqual({});
  });
  test('a file is found from the directory that is given, whatever its name looks like', async () => {
    await file('strict', '{"read":["/a"]}');
    expect(await loadProfile('strict', folder)).toEqual({ read: ['/a'] });
  });
  test('a built-in name is no file', async () => {
    await file('none', '{"read":["/a"]}');
    expect(await loadProfile('none', folder)).not.toHaveProperty('read');
  });
  test('a name that is neither built in nor a file is an error', async () => {
    await expect(loadProfile('nowhere', '/')).rejects.toMatchObject({ code: 'file/not-found' });
  });
  test('a file that is not JSON is an error', async () => {
    await expect(loadProfile(await file('bad.json', '{'), '/')).rejects.toMatchObject({
      code: 'file/not-json',
    });
  });
  test.each([
    [{ network: { outbound: { allow_port: [0] } } }, 'network.outbound.allow_port.0'],
    [{ network: { outbound: { allow_port: [65_536] } } }, 'network.outbound.allow_port.0'],
    [{ network: { outbound: { allow_port: [1.5] } } }, 'network.outbound.allow_port.0'],
    [{ network: { outbound: { insecure_allow_all: 1 } } }, 'network.outbound.insecure_allow_all'],
    [{ network: { inbound: { allow_host: ['*'] } } }, 'network.inbound.allow_host.0'],
    [{ network: { mode: 1 } }, 'network.mode'],
    [{ name: 1 }, 'name'],
    // That of before 1.0.
    [{ network: { outbound: { allow_transport: ['tcp'] } } }, 'network.outbound'],
    [{ network: { outbound: { allow_host: ['a b'] } } }, 'network.outbound.allow_host.0'],
    [{ read: 'x' }, 'read'],
    [{ privileged: 'yes' }, 'privileged'],
    [[], 'not a permission profile'],
    // One that a later release knows could forbid something.
    [{ deny: ['/a'] }, 'deny'],
    [{ network: { outbound: { deny_host: ['x.example'] } } }, 'network.outbound'],
  ])('%j is refused naming the key', (value, named) => {
    expect(() => decodeProfile(value, 'x', '/')).toThrow(named);
  });
  test('a mount that cannot be read is refused', () => {
    expect(() => decodeProfile({ write: ['/a;b:/c'] }, 'x', '/')).toThrow(
      expect.objectContaining({ code: 'run/invalid-volume' }),
    );
  });
});

describe('mounts of a profile', () => {
  test('the same target in read and write is writable', () => {
    expect(profileMounts({ read: ['/a:/x'], write: ['/a:/x'] }, '/')).toEqual([
      { source: '/a', target: '/x', readOnly: false },
    ]);
  });
  test('volumes are added with absolute paths', () => {
    const volume = { source: '/v', target: '/v', readOnly: true };
    expect(withVolumes({ write: ['rel:/r'] }, [volume], '/cwd')).toEqual({
      read: ['/v:/v'],
      write: ['/cwd/rel:/r'],
    });
  });
  test('a volume on a target that is taken is an error', () => {
    const volume = { source: '/v', target: '/x', readOnly: true };
    expect(() => withVolumes({ read: ['/a:/x'] }, [volume], '/')).toThrow('two mounts for "/x"');
  });
});
