import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Limits } from '@skep/cli/permissions/limits.ts';
import { findBubblewrap } from '@skep/cli/runtime/sandbox/bubblewrap.ts';
import { confinedUser } from '@skep/cli/permissions/confined-user.ts';
import { runToItsEnd } from '@skep/cli/runtime/sandbox/run-to-end.ts';
import { onDisk } from './fixtures/on-disk.ts';
import { component, title } from './require.ts';

// That a container is limited proves runtime/contract/limits.ts, for the sandbox too as whoever runs these tests.

const sandbox = await component('sandbox');
const ORDINARY = 1234;
const users: [who: string, become: string[], uid: number][] =
  process.getuid?.() === 0
    ? [
        ['root', [], 0],
        ['an ordinary user', ['setpriv', `--reuid=${ORDINARY}`, `--regid=${ORDINARY}`, '--clear-groups', '--'], ORDINARY], // prettier-ignore
      ]
    : [['an ordinary user', [], process.getuid?.() ?? 0]];

const MIB = 1024 ** 2;
const TIGHT: Limits = { memory: 256 * MIB, pids: 64, cpus: 0, disk: 32 * MIB };
const NONE: Limits = { memory: 0, pids: 0, cpus: 0, disk: 0 };

const shell = (script: string) => ({ file: '/bin/sh', args: ['-c', script] });
const perl = (script: string) => ({ file: '/usr/bin/perl', args: ['-e', script] });

/** Each process far below the limit, together beyond it. */
const MANY_PROCESSES = shell(
  `for one in 1 2 3 4 5 6 7 8; do perl -e 'my $x = "x" x 60000000; sleep 30' & done; wait`,
);
/** In a file without a name that nobody maps (memfd_create(2) is 319 on x86-64, 279 on arm64). */
const UNMAPPED = perl(
  `my $name = "x"; my $fd = syscall(${process.arch === 'arm64' ? 279 : 319}, $name, 0);
   open(my $file, ">&=", $fd) or die; for (1..600) { syswrite($file, "y" x 1048576) or die $! } sleep 30`,
);
/** Tells that it has got something and was left alone with it for longer than two looks take. */
const GOT = 'select(undef, undef, undef, 2.5); open(my $got, ">", "/home/skep/got"); close $got; sleep 30';
const BYTES = '400 * 1000 * 1000';
/** Calls itself what bubblewrap is called while it sets a sandbox up. */
const UNDER_ITS_NAME = perl(`$0 = "bwrap"; my $bytes = ${BYTES}; my $x = "x" x $bytes; ${GOT}`);
/** In a thread, where the first thread has ended (exit(2) is 60 on x86-64, 93 on arm64). */
const WITHOUT_FIRST_THREAD = perl(
  `use threads; threads->create(sub { my $bytes = ${BYTES}; my $x = "x" x $bytes; ${GOT} });
   syscall(${process.arch === 'arm64' ? 93 : 60}, 0)`,
);
/** As UNMAPPED, in descriptors that one thread has for itself (close_range(2) is 436). */
const OF_ONE_THREAD = perl(
  `use threads; threads->create(sub { syscall(436, 100000, 100001, 2);
   my $name = "x"; my $fd = syscall(${process.arch === 'arm64' ? 279 : 319}, $name, 0);
   open(my $file, ">&=", $fd) or die; for (1..400) { syswrite($file, "y" x 1048576) or die $! } ${GOT} }); sleep 30`,
);
const SYSTEM_V = perl(
  `my $id = shmget(0, ${BYTES}, 01600); defined $id or die "refused: $!";
   shmwrite($id, "y" x 1000000, $_ * 1000000, 1000000) or die $! for 0..399; ${GOT}`,
);
/** Removed as soon as they are made, and written all the same. */
const REMOVED_FILES = perl(
  `my @files; for (1..30) { open(my $file, ">", "/home/skep/$_"); unlink "/home/skep/$_";
   syswrite($file, "y" x 3000000); push @files, $file } ${GOT}`,
);
/** Where nobody could look at all in time. */
const BEHIND_MANY = perl(
  `for (1..9) { last unless fork } my @open; while (open(my $one, "<", "/dev/null")) { push @open, $one; last if @open > 15000 }
   open(my $file, ">", "/home/skep/large-$$"); syswrite($file, "y" x 1000000) for 1..4; sleep 170`,
);
const MANY_FILES = shell(
  'for one in $(seq 1 30); do head -c 3000000 /dev/zero >/home/skep/$one; done; sleep 30',
);
/** 150 MB as fast as it can. */
const FAST_LOG = shell('yes 0123456789012345678901234567890123456789 | head -c 157286400 >&2');
/** Doubles until no more can be started, and goes on trying. */
const FORK_BOMB = perl('while (1) { defined(fork) or select(undef, undef, undef, 0.1) }');

type Call = readonly [method: string, params?: object];

describe.skipIf(!sandbox.available).each(users)(
  title('a server that takes all it can get, in the sandbox of %s,', sandbox),
  (_who, become, uid) => {
    let directory: string;
    beforeEach(() => {
      directory = mkdtempSync(path.join(tmpdir(), 'skep-limits-'));
      if (uid !== process.getuid?.()) chownSync(directory, uid, uid);
    });
    afterEach(() => rmSync(directory, { recursive: true, force: true }));

    function probed(limits: Limits, calls: readonly Call[], programs = ''): unknown[] {
      const prober = path.join(import.meta.dirname, 'sandbox-prober.ts');
      const asked = calls.map(([method, params = {}]) => [method, params]);
      const args = [process.execPath, prober, directory, JSON.stringify({ limits }), JSON.stringify(asked)];
      const [file = '', ...rest] = [...become, ...args];
      const env = { PATH: `${programs}${process.env['PATH']}`, HOME: directory };
      const { status, stdout, stderr } = spawnSync(file, rest, { env, encoding: 'utf8', timeout: 220_000 });
      if (status !== 0) throw new Error(`the prober failed: ${stderr}`);
      return JSON.parse(stdout) as unknown[];
    }

    test('gets it where it is not limited', () => {
      const calls: Call[] = [
        ['probe/hold', { bytes: 320 * MIB }],
        ['probe/fork', { count: 80 }],
        ['probe/run', shell('head -c 300000000 /dev/zero >/tmp/large')],
        ['probe/run', shell('rm /tmp/large; head -c 40000000 /dev/zero >/home/skep/large')],
        ['ping'],
      ];
      const done = { status: 0, stdout: '', stderr: '' };
      expect(probed(NONE, calls)).toEqual(['held', 80, done, done, {}]);
    });

    test('is ended for its memory', () => {
      const [end] = probed(TIGHT, [['outside/ends', { after: ['probe/hold', { bytes: 2048 * MIB }] }]]);
      expect(end).toEqual({ exitCode: 137, exceeded: 'memory' });
    });

    test.each([
      ['many processes', MANY_PROCESSES],
      ['files that nobody maps', UNMAPPED],
    ])('does not get its memory through %s', (_how, program) => {
      // A control group of the kernel ends what takes most, and the server goes on.
      const [, uses] = probed({ ...TIGHT, disk: 0 }, [['probe/start', program], ['outside/uses']]);
      expect(uses).toHaveProperty(
        'memory',
        expect.toSatisfy((bytes: number) => bytes <= TIGHT.memory),
      );
    });

    test.each([
      ['a program that is called like bubblewrap', UNDER_ITS_NAME],
      ['a program whose first thread has ended', WITHOUT_FIRST_THREAD],
      ['descriptors of one thread', OF_ONE_THREAD],
      ['shared memory of System V', SYSTEM_V],
    ])('keeps no more memory than it may in %s', (_where, program) => {
      const limits = { ...TIGHT, disk: 0 };
      const [, , kept] = probed(limits, [['probe/title', { name: 'bwrap' }], ['probe/start', program], ['outside/keeps']]); // prettier-ignore
      expect(kept).toEqual([]);
    });

    test.skipIf(process.getuid?.() !== 0)(
      'is not ended for what others keep in memory beside its home',
      () => {
        using _ = onDisk({ dir: directory }, ['.'], `mode=700,uid=${uid}`);
        writeFileSync(path.join(directory, 'others'), Buffer.alloc(300 * MIB));
        const [, kept] = probed({ ...TIGHT, disk: 0 }, [['probe/start', perl(GOT)], ['outside/keeps']]);
        expect(kept).toContain('got');
      },
    );

    test('starts no more processes than it may, however it forks', () => {
      const [, uses] = probed(TIGHT, [['probe/start', FORK_BOMB], ['outside/uses']]);
      const most = expect.toSatisfy((processes: number) => processes > 40 && processes <= TIGHT.pids + 4);
      expect(uses).toHaveProperty('mostProcesses', most);
    });

    test.each([
      ['files', MANY_FILES],
      ['files that it has removed', REMOVED_FILES],
    ])('is ended for what it keeps on disk in %s', (_what, program) => {
      const [, end] = probed(TIGHT, [['probe/start', program], ['outside/ends']]);
      expect(end).toEqual({ exitCode: 137, exceeded: 'disk' });
    });

    test('is ended for what it keeps on disk, however long counting takes', () => {
      // What others free on one disk at the same time would hide what it writes, until it is counted again.
      using _ =
        process.getuid?.() === 0 ? onDisk({ dir: directory }, ['.'], `mode=700,uid=${uid}`) : undefined;
      const slow = path.join(directory, 'slow');
      mkdirSync(slow);
      writeFileSync(path.join(slow, 'du'), '#!/bin/sh\n/usr/bin/du "$@"\nexec sleep 6\n', { mode: 0o755 });
      const later = { ...MANY_FILES, args: ['-c', `sleep 2; ${MANY_FILES.args[1] ?? ''}`] };
      const calls: Call[] = [['probe/start', later], ['outside/ends']];
      expect(probed(TIGHT, calls, `${slow}:`)[1]).toEqual({ exitCode: 137, exceeded: 'disk' });
    });

    test('is ended where what it keeps cannot be counted for all the files that it has open', () => {
      // What others free on one disk at the same time would hide what it writes.
      using _ =
        process.getuid?.() === 0 ? onDisk({ dir: directory }, ['.'], `mode=700,uid=${uid}`) : undefined;
      const limits = { ...TIGHT, disk: 64 * MIB };
      const [, end] = probed(limits, [['probe/start', BEHIND_MANY], ['outside/ends']]);
      expect(end).toEqual({ exitCode: 137, exceeded: 'disk' });
    }, 240_000);

    test('fills no disk with its log, which goes on', () => {
      const said = `the end ${'.'.repeat(40)}\n`;
      const [ended, , log] = probed({ ...TIGHT, disk: 0 }, [
        ['probe/flood', FAST_LOG],
        ['probe/stderr', { text: `\n${said}` }],
        ['outside/log'],
      ]);
      const bounded = (bytes: number): boolean => bytes > 10 * MIB && bytes <= 20 * MIB;
      expect(ended).toBe(0);
      expect(log).toEqual({ tail: said, bytes: expect.toSatisfy(bounded) });
    });
  },
);

describe.skipIf(!sandbox.available)(title('what runs while a package is fetched', sandbox), () => {
  const TAKES = ['/usr/bin/perl', '-e', `my $bytes = ${BYTES}; my $x = "x" x $bytes; sleep 20`];

  test.each(['with control groups', 'without'])('is ended for its memory, %s', async (which) => {
    const stage = mkdtempSync(path.join(tmpdir(), 'skep-fetch-limits-'));
    try {
      const search = { env: process.env, platform: process.platform, cacheDir: stage };
      const { groups, ...found } = await findBubblewrap(search);
      const bubblewrap = which === 'without' ? found : { ...found, groups };
      const user = await confinedUser({ asRoot: found.setpriv !== undefined, name: 'fetch', mounts: [] });
      const program = { command: TAKES, env: {}, mounts: [], network: 'none', user, endsWithParent: true } as const; // prettier-ignore
      const end = await runToItsEnd(bubblewrap, program, AbortSignal.timeout(30_000), {
        stage,
        limits: TIGHT,
      });
      expect(end).toMatchObject({ exceeded: TIGHT.memory });
      expect(end.status).not.toBe(0);
    } finally {
      rmSync(stage, { recursive: true });
    }
  });
});
