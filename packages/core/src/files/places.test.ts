import { describe, expect, test } from 'vitest';
import { places, type PlacesInput } from './places.ts';

const linux: PlacesInput = { env: {}, home: '/home/ann', platform: 'linux', temp: '/tmp', uid: 1000 };

describe('places', () => {
  test('follow the XDG defaults', () => {
    const found = places(linux);
    expect(found.configFile).toBe('/home/ann/.config/skep/config.yaml');
    expect(found.runConfigsDir).toBe('/home/ann/.local/state/skep/runconfigs');
    expect(found.statusesDir).toBe('/home/ann/.local/share/skep/statuses');
    expect(found.logsDir).toBe('/home/ann/.local/share/skep/logs');
    expect(found.cacheDir).toBe('/home/ann/.cache/skep');
    expect(found.supervisorSocket).toBe('/tmp/skep-1000/supervisor.sock');
  });

  test.each([
    ['XDG_CONFIG_HOME', 'configDir'],
    ['XDG_STATE_HOME', 'stateDir'],
    ['XDG_DATA_HOME', 'dataDir'],
    ['XDG_CACHE_HOME', 'cacheDir'],
    ['XDG_RUNTIME_DIR', 'runtimeDir'],
  ] as const)('honour %s', (name, place) => {
    expect(places({ ...linux, env: { [name]: '/x' } })[place]).toBe('/x/skep');
  });

  test.each(['', 'relative/dir'])('ignore the value "%s" as the XDG specification says', (value) => {
    expect(places({ ...linux, env: { XDG_STATE_HOME: value } }).stateDir).toBe('/home/ann/.local/state/skep');
  });

  test('use .config on macOS too', () => {
    expect(places({ ...linux, platform: 'darwin' }).configDir).toBe('/home/ann/.config/skep');
  });

  test('use LOCALAPPDATA and a named pipe on Windows', () => {
    const found = places({
      env: { LOCALAPPDATA: 'C:\\Users\\ann\\AppData\\Local' },
      home: 'C:\\Users\\ann',
      platform: 'win32',
      temp: 'C:\\Temp',
    });
    expect(found.configDir).toBe('C:\\Users\\ann\\.config\\skep');
    expect(found.stateDir).toBe('C:\\Users\\ann\\AppData\\Local\\state\\skep');
    expect(found.supervisorSocket).toBe('\\\\.\\pipe\\skep-C-Users-ann-AppData-Local-state-skep');
  });

  test.each(['linux', 'darwin'] as const)(
    'have a socket that can be bound on %s, however long the paths',
    (platform) => {
      const limit = platform === 'linux' ? 107 : 103;
      for (let length = 1; length < 200; length += 1) {
        const long = `/${'ü'.repeat(length)}`;
        const env = { XDG_RUNTIME_DIR: long, XDG_STATE_HOME: `/state${String(length)}` };
        for (const temp of ['/tmp', long]) {
          const { supervisorSocket } = places({ ...linux, platform, env, temp });
          expect(Buffer.byteLength(supervisorSocket)).toBeLessThanOrEqual(limit);
        }
      }
    },
  );
  test('share no short directory between users or states', () => {
    const long = `/${'x'.repeat(120)}`;
    const at = (state: string, uid: number): string =>
      places({ ...linux, uid, env: { XDG_RUNTIME_DIR: long, XDG_STATE_HOME: state } }).runtimeDir;
    expect(new Set([at('/a', 1), at('/b', 1), at('/a', 2)]).size).toBe(3);
    expect(at('/a', 1)).toMatch(/^\/tmp\/skep-1-[0-9a-f]{12}$/u);
  });
  test('keep users apart in a shared temporary directory', () => {
    expect(places({ ...linux, uid: 1 }).runtimeDir).not.toBe(places({ ...linux, uid: 2 }).runtimeDir);
  });
});
