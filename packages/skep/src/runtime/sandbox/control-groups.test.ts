import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findControlGroups, hasUsedUpMemory, inGroup } from './control-groups.ts';

describe('control groups', () => {
  let root: string;
  const at = (...names: string[]): string => path.join(root, ...names);
  const file = (name: string, text: string): void => writeFileSync(at(name), text);
  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), 'skep-groups-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  test('of version 2 are used where they have memory and processes, and hand these down', () => {
    mkdirSync(at('skep'));
    for (const name of ['.', 'skep'])
      file(`${name}/cgroup.subtree_control`, name === '.' ? 'memory\n' : '\n');
    file('cgroup.controllers', 'cpuset cpu io memory hugetlb pids\n');
    const found = findControlGroups(`cgroup2 ${root} cgroup2 rw,nosuid 0 0\n`);
    expect(found).toEqual({ version: 2, memory: at('skep'), pids: at('skep'), cpu: at('skep') });
    expect(readFileSync(at('cgroup.subtree_control'), 'utf8')).toBe('+pids +cpu');
    expect(readFileSync(at('skep/cgroup.subtree_control'), 'utf8')).toBe('+memory +pids +cpu');
  });

  test('of version 1 are used, a hierarchy for each controller, beside an empty one of version 2', () => {
    for (const name of ['unified', 'memory', 'pids', 'cpu,cpuacct']) mkdirSync(at(name));
    file('unified/cgroup.controllers', '\n');
    const row = (name: string): string => `cgroup ${at(name)} cgroup rw,relatime,${name} 0 0\n`;
    const all = [`cgroup2 ${at('unified')} cgroup2 rw 0 0\n`, row('memory'), row('pids')];
    const memory = at('memory/skep');
    const pids = at('pids/skep');
    expect(findControlGroups(all.join(''))).toEqual({ version: 1, memory, pids });
    const cpu = at('cpu,cpuacct/skep');
    expect(findControlGroups([...all, row('cpu,cpuacct')].join(''))).toEqual({
      version: 1,
      memory,
      pids,
      cpu,
    });
  });

  test.each([
    ['there are none', () => ''],
    ['one cannot be read', () => `cgroup2 ${root}/gone cgroup2 rw 0 0\n`],
    ['memory is not among them', () => `cgroup ${root} cgroup rw,pids 0 0\n`],
  ])('are not used where %s', (_why, mounts) => {
    expect(findControlGroups(mounts())).toBeUndefined();
  });

  test.each([
    ['memory.events', 'low 0\noom 1\noom_kill 1\n', true],
    ['memory.events', 'low 0\noom 3\noom_kill 0\noom_group_kill 0\n', false],
    ['memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n', true],
    ['memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 0\n', false],
  ])('%s with %j says whether memory was used up: %s', async (name, text, isUsedUp) => {
    file(name, text);
    expect(await hasUsedUpMemory([root])).toBe(isUsedUp);
  });

  test('a command enters all of them before it is anything else, and with its own arguments', () => {
    const group = ['a', 'b'].map((name) => at(name));
    for (const directory of group) mkdirSync(directory);
    const [program = '', ...args] = inGroup(group, ['/bin/sh', '-c', 'echo "$$ $1"', 'x', 'a  b$(c)']);
    const [pid, ...said] = execFileSync(program, args, { encoding: 'utf8' }).trimEnd().split(' ');
    expect(said.join(' ')).toBe('a  b$(c)');
    for (const directory of group) {
      expect(readFileSync(path.join(directory, 'cgroup.procs'), 'utf8')).toBe(`${pid}\n`);
    }
  });

  test('a command that cannot enter one is not started', () => {
    const [program = '', ...args] = inGroup([at('gone')], ['/usr/bin/touch', at('started')]);
    expect(() => execFileSync(program, args, { stdio: 'ignore' })).toThrow();
    expect(existsSync(at('started'))).toBe(false);
  });
});
