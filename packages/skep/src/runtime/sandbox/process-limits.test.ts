import { expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../permissions/limits.ts';
import { confinedUser, SHARING } from '../../permissions/confined-user.ts';
import { countsAlone, limitOptions } from './process-limits.ts';

const MIB = 1024 ** 2;
const limits = { ...DEFAULT_LIMITS, memory: 256 * MIB, pids: 64, disk: 8 * MIB };
const linuxTest = test.skipIf(process.platform !== 'linux');

linuxTest('without a control group the kernel bounds each process, and their number', () => {
  const options = limitOptions({ limits, byGroup: false, countsAlone: true });
  expect(options).toEqual(
    expect.arrayContaining(['--core=0', `--fsize=${8 * MIB}`, `--data=${1536 * MIB}`, '--nproc=64']),
  );
});

linuxTest('in a control group memory and processes are left to it', () => {
  const options = limitOptions({ limits, byGroup: true, countsAlone: true });
  expect(options.join(' ')).toMatch(/^--core=0 --nofile=\d+:\d+ --fsize=\d+$/);
});

linuxTest('processes of others that would be counted too are no reason to refuse one', () => {
  const options = limitOptions({ limits, byGroup: false, countsAlone: false });
  expect(options.join(' ')).not.toContain('nproc');
});

linuxTest('what has no limit gets none, and files that are open at once always have one', () => {
  const none = { memory: 0, pids: 0, disk: 0, cpus: 0 };
  const options = limitOptions({ limits: none, byGroup: false, countsAlone: true });
  expect(options).toEqual(['--core=0', expect.stringMatching(/^--nofile=\d+:\d+$/)]);
  const [soft = 0, hard = 0] = options[1]?.split('=')[1]?.split(':').map(Number) ?? [];
  expect(soft).toBeLessThanOrEqual(hard);
  expect(hard).toBeLessThanOrEqual(65_536);
});

test.each([
  [false, 1000, '6.1.0-13-amd64', true],
  [false, 1000, '5.14.0', true],
  [false, 1000, '5.10.0', false],
  [false, 1000, '4.18.0', false],
  [true, 60_706, '4.18.0', true],
  [true, 61_183, '4.18.0', true],
  [true, 61_184, '6.1.0', false],
  [true, 1000, '6.1.0', false],
])(
  'started by root: %s, as user %i, on Linux %s processes are counted alone: %s',
  (root, uid, kernel, alone) => {
    expect(countsAlone(root, { uid, gid: uid }, kernel)).toBe(alone);
  },
);

test('servers of root that share volumes are one user, whose processes are not counted for each', async () => {
  const user = await confinedUser({ asRoot: true, name: SHARING, mounts: [] });
  expect(countsAlone(true, user)).toBe(false);
});
