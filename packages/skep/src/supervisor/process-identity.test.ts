import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { identify, isAlive, lacksGroups, remembering } from './process-identity.ts';

const OTHER_BOOT = '00000000-0000-4000-8000-000000000000';

test('who looks at many workloads asks about each process once', () => {
  const asked: string[] = [];
  const isThere = remembering(({ pid, started }) => {
    asked.push(`${pid} ${started}`);
    return started === 'now';
  });
  const answers = ['now', 'then', 'now', 'then'].map((started) => isThere({ pid: 7, started }));
  expect(answers).toEqual([true, false, true, false]);
  expect(asked).toEqual(['7 now', '7 then']);
});

describe.runIf(process.platform === 'linux')('identity of a process on Linux', () => {
  test('is the same every time it is asked, and alive', () => {
    const self = identify(process.pid, 'linux');
    expect(self).toEqual(identify(process.pid, 'linux'));
    expect(self && isAlive(self, 'linux')).toBe(true);
  });

  test('is not that of the process with its pid and start tick of another boot', () => {
    const { pid, started } = identify(process.pid, 'linux') ?? { pid: 0, started: '' };
    const [boot = '', ticks = ''] = started.split(' ');
    expect(boot).toMatch(/^[0-9a-f-]{36}$/);
    expect(isAlive({ pid, started: `${OTHER_BOOT} ${ticks}` }, 'linux')).toBe(false);
  });

  test('lacks a group that this process has got since', () => {
    const self = identify(process.pid, 'linux') ?? { pid: 0, started: '' };
    const groups = process.getgroups?.() ?? [];
    const added = Math.max(0, ...groups) + 1;
    expect(lacksGroups(self, groups, 'linux')).toBe(false);
    expect(lacksGroups(self, [], 'linux')).toBe(false);
    expect(lacksGroups(self, [...groups, added], 'linux')).toBe(true);
    // Nothing is known of one that has ended, nor on a system that does not say.
    expect(lacksGroups({ ...self, started: 'then' }, [added], 'linux')).toBe(false);
    expect(lacksGroups(self, [added], 'darwin')).toBe(false);
  });

  test('is not that of the process with its pid that started at another tick', () => {
    const { pid, started } = identify(process.pid, 'linux') ?? { pid: 0, started: '' };
    expect(isAlive({ pid, started: `${started}0` }, 'linux')).toBe(false);
  });

  test('ends with the process, and is not had of what is no process', async () => {
    const child = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)']);
    await once(child, 'spawn');
    const known = identify(child.pid ?? 0, 'linux');
    expect(known && isAlive(known, 'linux')).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(known && isAlive(known, 'linux')).toBe(false);
    for (const pid of [0, -1, 1.5]) expect(identify(pid, 'linux')).toBeUndefined();
  });
});

describe.runIf(existsSync('/bin/ps'))('identity of a process on other systems', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('does not depend on the zone or the language of who asks', () => {
    vi.stubEnv('TZ', 'Asia/Tokyo');
    const inTokyo = identify(process.pid, 'darwin');
    vi.stubEnv('TZ', 'America/New_York');
    expect(inTokyo?.started).toMatch(/\d\d:\d\d:\d\d/);
    expect(identify(process.pid, 'darwin')).toEqual(inTokyo);
  });
});
