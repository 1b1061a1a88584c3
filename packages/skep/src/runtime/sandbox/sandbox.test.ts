import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import type { Observed, WorkloadSpec } from '../runtime.ts';
import { checkSpec } from './check-spec.ts';
import { differences } from './events.ts';
import { confinedWorkload, startProgram, untilFound } from './launch.ts';
import { isDiskFull } from './confined-install.ts';
import { followFile, logTail } from './log-file.ts';
import { packageCommand, treeManifest } from './package-trees.ts';
import { workloadPlaces } from './places.ts';
import { encodeSpec, readSpec, readStatus, runState, UNKNOWN_EXIT } from './records.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-sandbox-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const spec: WorkloadSpec = {
  name: 'w',
  reference: 'npm-x@1-0123456789ab',
  args: ['--flag'],
  env: { TOKEN: 's3cret value' },
  labels: {},
  stdio: true,
  mounts: [],
  network: 'none',
  ports: [],
  privileged: false,
};

test('waiting for the first process inside is bounded in time, however long a machine takes for each answer', async () => {
  let asked = 0;
  const found = untilFound(
    async () => {
      asked += 1;
      await pause(5);
      return undefined;
    },
    new AbortController().signal,
    30,
  );
  expect(await found).toBeUndefined();
  expect(asked).toBeLessThan(20);
});

test('bubblewrap has its time from when it is told what to do, however long that takes to be there', async () => {
  const places = workloadPlaces(path.join(directory, 'slow'));
  await mkdir(places.directory);
  const limitMs = 200;
  // In the place of what runs inside.
  const child = spawn('/bin/sleep', ['60']);
  const state = once(AbortSignal.timeout(2 * limitMs), 'abort').then(async () => {
    await writeFile(places.status, `{"child-pid":${process.pid}}\n`);
    return [];
  });
  const opening = { connected: Promise.resolve([]) };
  const complete = async (): Promise<void> => {};
  try {
    const launching = { places, spec, network: undefined, opening, state, complete };
    const { init } = await startProgram(launching, { child, release() {} }, limitMs);
    expect(init).toBe(process.pid);
  } finally {
    child.kill();
  }
});

test.skipIf(process.platform !== 'linux')(
  'a disk is full where a program says so and it has no room',
  async () => {
    const said = 'npm error nospc ENOSPC: no space left on device';
    expect(await isDiskFull(said, directory)).toBe(false);
    // Has no room for anything.
    expect(await isDiskFull(said, '/proc')).toBe(true);
    expect(await isDiskFull('it failed', '/proc')).toBe(false);
    expect(await isDiskFull('write EDQUOT', directory)).toBe(true);
  },
);

describe('confinedWorkload', () => {
  const program = confinedWorkload({
    spec: { ...spec, mounts: [{ source: '/srv/out', target: '/out', readOnly: false }] },
    tree: '/cache/packages/x',
    node: '/opt/node/bin/node',
    command: ['/skep/bin/node', '/app/x.js'],
    user: { uid: 1000, gid: 1000 },
    network: undefined,
    compiled: { mounts: [], env: {} },
  });

  test('is the program with its arguments, its package, Node and the declared mounts', () => {
    expect(program.command).toEqual(['/skep/bin/node', '/app/x.js', '--flag']);
    expect(program.env).toMatchObject({ TOKEN: 's3cret value' });
    expect(program.mounts.filter((mount) => !mount.readOnly)).toEqual([
      { source: '/srv/out', target: '/out', readOnly: false },
    ]);
  });
});

describe('checkSpec refuses', () => {
  const port = { hostIp: '127.0.0.1', hostPort: 1, containerPort: 2 };
  test.each<[string, Partial<WorkloadSpec>]>([
    ['privileges', { privileged: true }],
    ['a port without a network', { ports: [{ ...port, hostPort: 2 }] }],
    ['a port that would need translation', { network: 'bridge', ports: [port] }],
    ['a network that it cannot make', { network: 'container:db' }],
    ['a NUL in an argument', { args: ['a\0b'] }],
    ['a NUL in the environment', { env: { A: '\0' } }],
    ['an environment name with "="', { env: { 'A=B': 'x' } }],
    ['a missing mount source', { mounts: [{ source: '/does/not/exist', target: '/x', readOnly: true }] }],
    ...[
      '/',
      '/app/x',
      '/proc',
      '/etc/passwd',
      '/usr/bin',
      '/x/../etc',
      'x',
      '/lib64',
      '/skep/bin/node',
      '//proc',
      '/./etc',
    ].map((target): [string, Partial<WorkloadSpec>] => [
      `mount target ${target}`,
      { mounts: [{ source: '/tmp', target, readOnly: true }] },
    ]),
    ...[['/data', '/data/x/sub'], ['/data/x', '/data'], ['/data/', '/data//x'], ['/home/skep/.config']].map(
      (targets): [string, Partial<WorkloadSpec>] => [
        `mounts below what a server may have written to: ${targets.join(' ')}`,
        { mounts: targets.map((target) => ({ source: '/tmp', target, readOnly: true })) },
      ],
    ),
    ['a name that is a path', { name: '../x' }],
  ])('%s', async (_what, changes) => {
    await expect(checkSpec({ ...spec, ...changes }, false)).rejects.toMatchObject({
      code: 'runtime/invalid-workload',
    });
  });

  test('nothing of an ordinary workload', async () => {
    const targets = ['/data/tmp', '/data/tmp2', '/tmp/in', '/home/skep'];
    const mounts = targets.map((target) => ({ source: tmpdir(), target, readOnly: true }));
    await checkSpec({ ...spec, mounts }, false);
  });

  test('nothing of a port that a network of its own translates', async () => {
    await checkSpec({ ...spec, network: 'bridge', ports: [port] }, true);
  });
});

describe('the saved workload', () => {
  test('comes back as it was, whatever is in it', async () => {
    const file = path.join(directory, 'spec.json');
    const text = anyText();
    await fc.assert(
      fc.asyncProperty(
        fc.array(text),
        fc.dictionary(fc.stringMatching(/^[A-Z][A-Z0-9_]*$/), text),
        async (args, env) => {
          const saved = { spec: { ...spec, args, env }, createdAt: new Date(1_700_000_000_000) };
          await writeFile(file, encodeSpec(saved));
          expect(await readSpec(file)).toEqual(saved);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('is an error with the file named when it is damaged', async () => {
    const file = path.join(directory, 'damaged.json');
    await writeFile(file, '{"spec":');
    await expect(readSpec(file)).rejects.toMatchObject({
      code: 'workload/state-unreadable',
      message: expect.stringContaining(file),
    });
    expect(await readSpec(path.join(directory, 'none'))).toBeUndefined();
  });
});

describe('runState', () => {
  async function workload(run: object | undefined, status: string) {
    const places = workloadPlaces(await mkdtemp(path.join(directory, 'run')));
    if (run)
      await writeFile(
        places.run,
        JSON.stringify({ bootId: 'now', startedAt: '2026-01-01T00:00:00.000Z', ...run }),
      );
    await writeFile(places.status, status);
    return runState(places, 'now');
  }
  const gone = { init: { pid: process.pid, startTime: '1' } };

  test.each([
    ['never started', undefined, '', { state: 'created' }],
    [
      'ended with a recorded status',
      gone,
      '{"child-pid":1}\n{"exit-code":7}\n',
      { state: 'exited', exitCode: 7 },
    ],
    [
      'its number belongs to a younger process now',
      gone,
      '{"child-pid":1}\n',
      { state: 'exited', exitCode: UNKNOWN_EXIT },
    ],
    [
      'the machine was started anew',
      { bootId: 'before' },
      `{"child-pid":${process.pid}}\n`,
      { state: 'exited', exitCode: UNKNOWN_EXIT },
    ],
    [
      'its launcher died before it wrote the process down',
      {},
      `{"child-pid":${process.pid}}\n`,
      { state: 'running', interrupted: true },
    ],
  ])('%s', async (_what, run, status, expected) => {
    expect(await workload(run, status)).toMatchObject(expected);
  });

  test.each(['{', '[]', '', '\uFFFD'])('a record that reads %j is as good as none', async (text) => {
    const places = workloadPlaces(await mkdtemp(path.join(directory, 'run')));
    await writeFile(places.run, text);
    expect(await runState(places, 'now')).toEqual({ state: 'created' });
    await writeFile(places.log, '');
    await writeFile(places.status, '{"child-pid":1}\nrubbish\n{"exit-code":7}\n');
    expect(await runState(places, 'now')).toMatchObject({ state: 'exited', exitCode: 7 });
  });

  test('leaves a half-written line of bubblewrap for later', async () => {
    const file = path.join(directory, 'half.json');
    await writeFile(file, '{ "child-pid": 12, "x": 1 }\n\n{ "exit-co');
    expect(await readStatus(file)).toEqual({ initPid: 12 });
  });
});

describe('differences', () => {
  const at = (state: Observed['state'], startedAt?: number): Observed => ({
    name: 'w',
    state,
    reference: 'r',
    labels: {},
    createdAt: new Date(0),
    ...(startedAt === undefined ? {} : { startedAt: new Date(startedAt) }),
  });
  const known = (one?: Observed) => new Map(one ? [['w', one]] : []);

  test.each<[string, Observed | undefined, Observed | undefined, string[]]>([
    ['nothing happened', at('running', 1), at('running', 1), []],
    ['created', undefined, at('created'), []],
    ['started', at('created'), at('running', 1), ['start']],
    ['ended', at('running', 1), at('exited', 1), ['exit']],
    ['is being started again', at('exited', 1), at('created'), []],
    ['restarted between two looks', at('running', 1), at('running', 2), ['exit', 'start']],
    ['started and ended between two looks', at('created'), at('exited', 1), ['start', 'exit']],
    ['removed while running', at('running', 1), undefined, ['exit', 'remove']],
    ['removed', at('exited', 1), undefined, ['remove']],
  ])('%s', (_what, before, now, actions) => {
    expect(differences(known(before), known(now)).map((event) => event.action)).toEqual(actions);
  });
});

describe('log files', () => {
  test('give the same last lines as cutting the whole text does', async () => {
    const file = path.join(directory, 'log');
    const lines = fc.array(
      fc.string({ maxLength: 5 }).map((text) => text.replaceAll('\n', ' ')),
      { maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(lines, fc.integer({ min: 0, max: 8 }), async (all, wanted) => {
        await writeFile(file, all.map((line) => `${line}\n`).join(''));
        const expected = all.slice(Math.max(0, all.length - wanted)).map((line) => `${line}\n`);
        expect(await logTail(file, wanted)).toBe(expected.join(''));
      }),
      { numRuns: 50 },
    );
  });

  test('give a tail that is longer than one block', async () => {
    const file = path.join(directory, 'long');
    const line = `${'x'.repeat(50_000)}\n`;
    await writeFile(file, `first\n${line}${line}${line}`);
    expect(await logTail(file, 2)).toBe(line + line);
  });

  test('are followed until the writer is over, the last words included', async () => {
    const file = path.join(directory, 'followed');
    await writeFile(file, 'one\ntwo\n');
    let asked = 0;
    const over = async () => {
      asked += 1;
      if (asked === 1) await appendFile(file, 'three\n');
      if (asked === 2) await appendFile(file, 'last\n');
      return asked >= 2;
    };
    let text = '';
    const signal = new AbortController().signal;
    for await (const bytes of followFile(file, { follow: true, tail: 1, signal, over, pollMs: 5 }))
      text += bytes.toString();
    expect(text).toBe('two\nthree\nlast\n');
  });
});

describe('packageCommand', () => {
  async function tree(bin: unknown, files: Record<string, string>): Promise<string> {
    const root = await mkdtemp(path.join(directory, 'tree'));
    const home = path.join(root, 'node_modules/@s/server');
    await mkdir(path.join(home, 'dist'), { recursive: true });
    await writeFile(path.join(root, 'package.json'), treeManifest('@s/server'));
    await writeFile(path.join(home, 'package.json'), JSON.stringify({ bin }));
    for (const [name, text] of Object.entries(files)) await writeFile(path.join(home, name), text);
    return root;
  }

  test.each([
    [
      'a script by its name',
      './dist/cli.mjs',
      { 'dist/cli.mjs': '' },
      ['/skep/bin/node', '/app/node_modules/@s/server/dist/cli.mjs'],
    ],
    [
      'a script by its first line',
      { server: 'run' },
      { run: '#!/usr/bin/env node\n' },
      ['/skep/bin/node', '/app/node_modules/@s/server/run'],
    ],
    [
      'anything else by itself',
      { server: 'run' },
      { run: '#!/bin/sh\n' },
      ['/app/node_modules/@s/server/run'],
    ],
  ])('runs %s', async (_what, bin, files, expected) => {
    expect(await packageCommand(await tree(bin, files))).toEqual(expected);
  });

  test.each([
    ['a program outside the package', '../../../etc/passwd'],
    ['two programs', { a: 'a.js', b: 'b.js' }],
    ['no program', undefined],
  ])('refuses %s', async (_what, bin) => {
    await expect(packageCommand(await tree(bin, {}))).rejects.toMatchObject({ code: 'runtime/start-failed' });
  });

  test('refuses a tree that is gone', async () => {
    await expect(packageCommand(path.join(directory, 'nowhere'))).rejects.toMatchObject({
      code: 'runtime/package-not-found',
    });
  });
});
