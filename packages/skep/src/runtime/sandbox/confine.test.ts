import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { Bubblewrap } from './confine.ts';
import { confinedOptions, startConfined, type ConfinedProgram } from './confine.ts';
import { closedMounts, confinedUser } from '../../permissions/confined-user.ts';
import { parseConfinedUser } from '../../permissions/confined-user-name.ts';
import { coverInherited } from './inherited-descriptors.ts';

const ordinary: Bubblewrap = {
  program: '/usr/bin/bwrap',
  version: '0.8.0',
  locksUserns: true,
  setpriv: undefined,
  architecture: 'x64',
  inherited: [],
  network: 'slirp4netns is not installed',
};
const root: Bubblewrap = { ...ordinary, setpriv: '/usr/bin/setpriv' };
const program: ConfinedProgram = {
  command: ['/bin/true'],
  env: {},
  mounts: [
    { source: '/srv/in', target: '/in', readOnly: true },
    { source: '/srv/out', target: '/out', readOnly: false },
  ],
  network: 'none',
  user: { uid: 1000, gid: 1000 },
};

describe.each([
  ['an ordinary user', ordinary],
  ['root', root],
])('a program confined by %s', (_who, bubblewrap) => {
  const given = confinedOptions(bubblewrap, program);
  const text = given.join(' ');

  test('has processes, mounts, host name and session of its own and no capability', () => {
    expect(given).toEqual(
      expect.arrayContaining(['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--new-session']),
    );
    expect(text).toContain('--cap-drop ALL');
  });

  test('sees no home directory, no root, no directory with keys, and writes declared mounts only', () => {
    const joined = confinedOptions(bubblewrap, { ...program, network: 'joined' });
    const sources = joined.flatMap((option, at) =>
      /^--(?:ro-)?bind(?:-try)?$/.test(option) ? [joined[at + 1] ?? ''] : [],
    );
    expect(sources.filter((one) => /^\/(?:home|root|var|srv|tmp|etc|usr|proc)?$/.test(one))).toEqual([]);
    expect(sources.filter((one) => /^\/etc\/(?:ssl|pki|pki\/tls)$|private/.test(one))).toEqual([]);
    expect(joined.flatMap((option, at) => (option === '--bind' ? [joined[at + 1]] : []))).toEqual([
      '/srv/out',
    ]);
    expect(text).toContain('--ro-bind /srv/in /in');
  });

  test('has a read-only view of the switches of the kernel, mounted over the process table', () => {
    expect(given.indexOf('/proc/sys')).toBeGreaterThan(given.indexOf('--proc'));
    expect(text).toContain('--ro-bind /proc/sys /proc/sys');
  });

  test('sees resolver and trust files only with a network, and joins one only then', () => {
    expect(given).toContain('--unshare-net');
    expect(given).not.toContain('/etc/ssl/certs');
    const joined = confinedOptions(bubblewrap, { ...program, network: 'joined' });
    expect(joined).not.toContain('--unshare-net');
    expect(joined).toContain('/etc/ssl/certs');
  });
});

test('bounds what lies in memory as files by parts of its memory, and makes the directory of devices read-only', () => {
  const GIB = 1024 ** 3;
  const sized = (bubblewrap: Bubblewrap, memory: number): string => {
    const limits = { memory, pids: 0, cpus: 0, disk: 0 };
    return confinedOptions({ ...bubblewrap, sizesTmpfs: true }, { ...program, limits }).join(' ');
  };
  for (const bubblewrap of [ordinary, root]) {
    const text = sized(bubblewrap, 2 * GIB);
    expect(text).toContain(`--size ${GIB} --tmpfs /tmp`);
    expect(text).toContain(`--size ${GIB / 2} --tmpfs /dev/shm --remount-ro /dev`);
    expect(text).toContain(`--size ${GIB} --tmpfs /home/skep`);
    expect(sized(bubblewrap, 0)).not.toContain('--size');
    // A release that does not know the option.
    expect(confinedOptions(bubblewrap, program)).not.toContain('--size');
  }
});

test('leaves --disable-userns out where bubblewrap does not know it', () => {
  expect(confinedOptions(ordinary, program)).toContain('--disable-userns');
  expect(confinedOptions({ ...ordinary, locksUserns: false }, program)).not.toContain('--disable-userns');
});

describe('who a program is inside', () => {
  test('is never root unless the person says so', async () => {
    const plain = { name: 'w', mounts: [{ source: '/', target: '/x', readOnly: false }] };
    for (const asRoot of [true, false]) {
      expect((await confinedUser({ ...plain, asRoot })).uid).toBeGreaterThan(0);
      expect((await confinedUser({ ...plain, asRoot, wanted: 'root' })).uid).toBe(0);
    }
  });

  test.each([
    ['root', { uid: 0, gid: 0 }],
    ['33', { uid: 33, gid: 33 }],
    ['33:44', { uid: 33, gid: 44 }],
  ])('%s', (text, user) => {
    expect(parseConfinedUser(text)).toEqual(user);
  });

  test.each(['', 'www-data', '-1', '1:', '4294967295', '1:4294967295', '1 2'])('not %j', (text) => {
    expect(() => parseConfinedUser(text)).toThrow(expect.objectContaining({ code: 'usage/invalid-value' }));
  });

  test('is told which mounts are closed to it', async () => {
    const mounts = [{ source: '/', target: '/x', readOnly: false }];
    expect(await closedMounts({ uid: 60_706, gid: 60_706 }, mounts)).toEqual(['may only read "/"']);
    expect(await closedMounts({ uid: 0, gid: 0 }, mounts)).toEqual([]);
    const missing = [{ source: '/does/not/exist', target: '/x', readOnly: false }];
    expect(await closedMounts({ uid: 60_706, gid: 60_706 }, missing)).toEqual([]);
    expect((await confinedUser({ asRoot: true, name: 'w', mounts: missing })).uid).toBeGreaterThan(0);
  });
});

describe('inherited descriptors', () => {
  test('are covered, and ours are not', () => {
    expect(coverInherited([0, 'pipe', 1], [1, 4, 6], 99)).toEqual([0, 'pipe', 1, 'ignore', 99, 'ignore', 99]);
  });
});

test('a program that cannot be started takes nothing else down where its mounts cannot be made either', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    const mounts = Promise.reject(new Error('no room'));
    const start = (): unknown =>
      startConfined(
        ordinary,
        { ...program, command: ['\0'] },
        { stdio: ['ignore', 'ignore', 'ignore'], mounts },
      );
    expect(start).toThrow('null bytes');
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});

test.each([
  ['an ordinary user', ordinary, []],
  // The program that gives up root would be steered by it.
  ['root', root, ['LD_KEY=1']],
])(
  'of the variables of a program, what starts it for %s is told on its command line',
  async (_, found, told) => {
    const env = { LD_KEY: '1', LC_ALL: 'de_DE', KEY: '2' };
    const commands: (readonly string[])[] = [];
    for (const more of [{}, { LANG: 'secret' }]) {
      const { child } = startConfined(
        found,
        { ...program, env: { ...env, ...more } },
        {
          stdio: ['ignore', 'ignore', 'ignore'],
          within(command) {
            commands.push(command);
            return ['/bin/true'];
          },
        },
      );
      await once(child, 'exit');
    }
    const variables = commands.map((command) => command.filter((one) => /^\w+=/.test(one)));
    expect(variables.map((all) => all.toSorted())).toEqual([['LANG=C.UTF-8', ...told].toSorted(), told]);
  },
);
