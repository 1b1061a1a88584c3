import { describe, expect, test } from 'vitest';
import { homeDirectory, places, type PlacesInput } from './places.ts';

const linux: PlacesInput = { env: {}, home: '/home/ann', platform: 'linux', temp: '/tmp' };

describe('places', () => {
  test('follow the XDG defaults', () => {
    const found = places(linux);
    expect(found.configFile).toBe('/home/ann/.config/skep/config.yaml');
    expect(found.runConfigsDir).toBe('/home/ann/.local/state/skep/runconfigs');
    expect(found.statusesDir).toBe('/home/ann/.local/share/skep/statuses');
    expect(found.logsDir).toBe('/home/ann/.local/share/skep/logs');
    expect(found.cacheDir).toBe('/home/ann/.cache/skep');
    expect(found.supervisorDir).toBe('/home/ann/.local/state/skep/supervisor');
  });

  test.each([
    ['XDG_CONFIG_HOME', 'configDir'],
    ['XDG_STATE_HOME', 'stateDir'],
    ['XDG_DATA_HOME', 'dataDir'],
    ['XDG_CACHE_HOME', 'cacheDir'],
  ] as const)('honour %s', (name, place) => {
    expect(places({ ...linux, env: { [name]: '/x' } })[place]).toBe('/x/skep');
  });

  test.each(['', 'relative/dir'])('ignore the value "%s" as the XDG specification says', (value) => {
    expect(places({ ...linux, env: { XDG_STATE_HOME: value } }).stateDir).toBe('/home/ann/.local/state/skep');
  });

  test('use .config on macOS too', () => {
    expect(places({ ...linux, platform: 'darwin' }).configDir).toBe('/home/ann/.config/skep');
  });

  test('use LOCALAPPDATA on Windows', () => {
    const found = places({
      env: { LOCALAPPDATA: 'C:\\Users\\ann\\AppData\\Local' },
      home: 'C:\\Users\\ann',
      platform: 'win32',
      temp: 'C:\\Temp',
    });
    expect(found.configDir).toBe('C:\\Users\\ann\\.config\\skep');
    expect(found.stateDir).toBe('C:\\Users\\ann\\AppData\\Local\\state\\skep');
  });

  test('find the supervisor by the state directory alone', () => {
    const env = { XDG_STATE_HOME: '/state' };
    const one = places({ ...linux, env: { ...env, XDG_RUNTIME_DIR: '/run/user/1000' } });
    const other = places({ ...linux, env, home: '/root', temp: '/elsewhere' });
    expect(one.supervisorDir).toBe(other.supervisorDir);
  });
});

test('a HOME that is empty or relative is none: files would lie wherever a command is run', () => {
  expect(homeDirectory(['', '/home/ada'], 'linux')).toBe('/home/ada');
  expect(homeDirectory(['here', undefined, '/home/ada'], 'linux')).toBe('/home/ada');
  expect(homeDirectory(['C:\\Users\\ada', '/home/ada'], 'win32')).toBe('C:\\Users\\ada');
  expect(() => homeDirectory(['', undefined], 'linux')).toThrow('HOME is no absolute path');
});
