import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import { arch, tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { RULES } from '@skep/cli/runtime/sandbox/seccomp/rules.ts';
import { freePort } from './fixtures/free-port.ts';
import { component, title } from './require.ts';

const sandbox = await component('sandbox');
const slirp = await component('slirp');
const asRoot = process.getuid?.() === 0;
const ORDINARY = 1234;
/** How to start a program as each user that a person may be; only root can become another one. */
const users: [string, string[], number][] = asRoot
  ? [
      ['root', [], 0],
      ['an ordinary user', ['setpriv', `--reuid=${ORDINARY}`, `--regid=${ORDINARY}`, '--clear-groups', '--'], ORDINARY], // prettier-ignore
    ]
  : [['an ordinary user', [], process.getuid?.() ?? 0]];

/** Sends to 127.0.0.1 at a port through the interface to the outside, by UDP and by TCP (SO_BINDTODEVICE is 25). */
const BOUND_SOCKETS = `
use Socket; use IO::Handle; STDOUT->autoflush(1);
my $to = sockaddr_in($ARGV[0], inet_aton("127.0.0.1"));
for my $kind (SOCK_DGRAM, SOCK_STREAM) {
  socket(my $s, PF_INET, $kind, 0) or die $!;
  setsockopt($s, SOL_SOCKET, 25, pack("Z16", "tap0")) or die $!;
  print "bound ";
  if ($kind == SOCK_DGRAM) { send($s, "datagram", 0, $to); next }
  local $SIG{ALRM} = sub { print "asked"; exit };
  alarm 2;
  print "asked" if connect($s, $to) || 1;
}`;

/** Tries every way to a file with a mode that makes it run as its owner or group; O_TMPFILE is 020200000. */
const SET_ID_PROGRAMS = `
use Fcntl; umask 0;
sub told { printf "%s=%s ", $_[0], $_[1] ? "ok" : $!+0 }
open(my $f, ">", "/data/program") or die $!;
told("plain", chmod(0755, "/data/program"));
told("setuid", chmod(04755, "/data/program"));
told("setgid", chmod(02755, $f));
told("opened", sysopen(my $o, "/data/opened", O_CREAT | O_WRONLY, 04755));
told("temporary", sysopen(my $t, "/data", 020200000 | O_RDWR, 06755));
my $node = "/data/made";
told("made", syscall(${arch() === 'arm64' ? 33 : 259}, -100, $node, 0104755, 0) != -1);`;

async function listening(where: net.ListenOptions): Promise<net.Server> {
  const server = net.createServer((socket) => void socket.end());
  await new Promise<void>((resolve) => void server.listen(where, resolve));
  return server;
}

describe.skipIf(!sandbox.available).each(users)(
  title('a hostile server, started by %s,', sandbox),
  (_who, become, uid) => {
    let directory: string;
    beforeEach(() => {
      directory = mkdtempSync(path.join(tmpdir(), 'skep-attack-'));
      if (asRoot) chownSync(directory, uid, uid);
    });
    afterEach(() => rmSync(directory, { recursive: true, force: true }));

    type Call = readonly [method: string, params?: object];
    interface Around {
      readonly spec?: Partial<WorkloadSpec>;
      /** Number and file of a descriptor that the shell left open. */
      readonly open?: readonly [number, string];
      readonly through?: readonly string[];
    }

    function attack(calls: readonly Call[], { spec = {}, open, through = [] }: Around = {}): unknown[] {
      const prober = path.join(import.meta.dirname, 'sandbox-prober.ts');
      const asked = calls.map(([method, params = {}]) => [method, params]);
      const args = [process.execPath, prober, directory, JSON.stringify(spec), JSON.stringify(asked)];
      const [file = '', ...rest] = [...become, ...through, ...args];
      const left = open === undefined ? undefined : openSync(open[1], 'r');
      try {
        const stdio = ['ignore', 'pipe', 'pipe', ...Array.from({ length: (open?.[0] ?? 3) - 3 }, () => 'ignore' as const)] as ('ignore' | 'pipe' | number)[]; // prettier-ignore
        if (left !== undefined) stdio.push(left);
        const env = { PATH: process.env['PATH'], HOME: directory, SECRET_OF_THE_CALLER: 'do not show' };
        const { status, stdout, stderr } = spawnSync(file, rest, {
          stdio,
          env,
          encoding: 'utf8',
          timeout: 60_000,
        });
        if (status !== 0) throw new Error(`the prober failed: ${stderr}`);
        return JSON.parse(stdout) as unknown[];
      } finally {
        if (left !== undefined) closeSync(left);
      }
    }

    /** What a system call gives, asked through an interpreter that the system has anyway: `ok` or the error number. */
    function systemCalls(wanted: readonly (readonly [name: string, ...args: number[]])[]): unknown[] {
      const calls = wanted.map(([name, ...args]): Call => {
        const number = RULES.find((rule) => rule.call === name)?.[arch() === 'arm64' ? 'arm64' : 'x64'];
        const code = `my $r = syscall(${[number, ...args].join(', ')}); print $r == -1 ? $!+0 : "ok"`;
        return ['probe/run', { file: '/usr/bin/perl', args: ['-e', code] }];
      });
      return attack(calls).map((answer) => (answer as { stdout: string }).stdout);
    }

    test('is no root, has no capability, gains no privilege and has its system calls filtered', () => {
      const [status, map] = attack([
        ['probe/read', { path: '/proc/self/status' }],
        ['probe/read', { path: '/proc/self/uid_map' }],
      ]).map(String);
      const uids = /^Uid:\t(\d+)\t(\d+)\t(\d+)\t(\d+)$/m.exec(status ?? '')?.slice(1);
      expect(uids).not.toContain('0');
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
        expect(status).toMatch(new RegExp(`^${set}:\\t0+$`, 'm'));
      }
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      expect(status).toMatch(/^Seccomp:\t2$/m);
      // Root's own namespace would make any user inside root outside; there it must be another one for real.
      if (uid === 0) expect(map?.trim().split(/\s+/)).toEqual(['0', '0', '4294967295']);
      else expect(map?.trim().split(/\s+/)[0]).toBe(uids?.[0]);
    });

    test('cannot write what the kernel is steered with, nor see what it tells root', () => {
      const paths = ['sys/kernel/core_pattern', 'sys/kernel/modprobe', 'sys/vm/swappiness', 'sysrq-trigger'];
      const written = attack(paths.map((name) => ['probe/write', { path: `/proc/${name}`, text: '' }]));
      for (const answer of written) {
        expect(answer).toMatchObject({ code: expect.stringMatching(/^E(?:ROFS|ACCES|NOENT)$/) });
      }
      const read = attack(
        ['kcore', 'keys', 'kmsg', 'sched_debug'].map((name) => ['probe/read', { path: `/proc/${name}` }]),
      );
      for (const answer of read) expect(answer).toMatchObject({ code: expect.any(String) });
    });

    test('reads no private key beside the certificates, no host file and nothing of the caller', () => {
      const secret = path.join(directory, 'secret.txt');
      writeFileSync(secret, 'TOP-SECRET');
      const [keys, pki, shadow, home, environment] = attack(
        [
          ['probe/list', { path: '/etc/ssl/private' }],
          ['probe/list', { path: '/etc/pki/tls/private' }],
          ['probe/read', { path: '/etc/shadow' }],
          ['probe/read', { path: secret }],
          ['probe/run', { file: '/usr/bin/env', args: [] }],
        ],
        { spec: { network: 'host' } },
      );
      for (const one of [keys, pki, shadow, home]) expect(one).toMatchObject({ code: 'ENOENT' });
      expect(JSON.stringify(environment)).not.toContain('do not show');
    });

    test.each([40, 63, 300])('gets nothing through descriptor %i that the shell left open', (number) => {
      const secret = path.join(directory, 'secret.txt');
      writeFileSync(secret, 'TOP-SECRET');
      const [content, listed] = attack(
        [
          ['probe/read', { path: `/proc/self/fd/${number}` }],
          ['probe/run', { file: '/bin/ls', args: ['-l', '/proc/self/fd'] }],
        ],
        { open: [number, secret] },
      );
      expect(JSON.stringify(content)).not.toContain('TOP-SECRET');
      expect(JSON.stringify(listed)).not.toContain('secret.txt');
    });

    test('has none of the kernel parts that an engine keeps from containers', () => {
      const refused = systemCalls([
        ['keyctl', 0, -3, 0],
        ['add_key', 0, 0, 0, 0, -3],
        ['request_key', 0, 0, 0, 0],
        ['io_uring_setup', 1, 0],
        ['userfaultfd', 0],
        ['bpf', 0, 0, 0],
        ['unshare', 0x10000000],
        ['unshare', 0x00020000],
        ['ptrace', 0, 0, 0, 0],
        ['personality', 0x40000],
        ['clone3', 0, 0],
        ['socket', 40, 1, 0],
        ['socket', 38, 5, 0],
      ]);
      expect(refused).toEqual(['1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '38', '97', '97']);
    });

    test('cannot read the keys of the user who started it', ({ skip }) => {
      if (spawnSync('keyctl', ['--version']).error) skip('keyctl is not installed');
      const script = 'keyctl add user skep-attack KEYRING-SECRET @s >/dev/null && exec "$@"';
      const perl = 'my ($t, $d) = ("user", "skep-attack"); my $k = syscall($ARGV[0], 10, -3, $t, $d, 0); my $b = "\\0" x 64; syscall($ARGV[0], 11, $k, $b, 64) if $k > 0; print "$k $b"'; // prettier-ignore
      const number = String(
        RULES.find((rule) => rule.call === 'keyctl')?.[arch() === 'arm64' ? 'arm64' : 'x64'],
      );
      const [found] = attack([['probe/run', { file: '/usr/bin/perl', args: ['-e', perl, number] }]], {
        through: ['keyctl', 'session', '-', '/bin/sh', '-c', script, 'sh'],
      });
      expect(found).toMatchObject({ stdout: expect.stringMatching(/^-1 /) });
      expect(JSON.stringify(found)).not.toContain('KEYRING-SECRET');
    });

    test('changes nothing outside its scratch directories and declared mounts', () => {
      const writable = path.join(directory, 'writable');
      mkdirSync(writable);
      if (asRoot) chownSync(writable, ORDINARY, ORDINARY);
      const mounts = [{ source: writable, target: '/data/out', readOnly: false }];
      const places = [
        '/data/out/x',
        '/tmp/x',
        '/home/skep/x',
        '/dev/shm/x',
        '/x',
        '/etc/x',
        '/usr/bin/x',
        '/app/x',
        '/skep/bin/node',
        '/data/x',
      ];
      const answers = attack(places.map((one) => ['probe/write', { path: one, text: 'x' }]), { spec: { mounts } }); // prettier-ignore
      expect(answers.slice(0, 4)).toEqual(['written', 'written', 'written', 'written']);
      for (const answer of answers.slice(4))
        expect(answer).toMatchObject({ code: expect.stringMatching(/^E/) });
      expect(readFileSync(path.join(writable, 'x'), 'utf8')).toBe('x');
      if (asRoot) expect(statSync(path.join(writable, 'x')).uid).toBe(ORDINARY);
    });

    test('leaves no program in a mount that others would run in its name', () => {
      const writable = path.join(directory, 'writable');
      mkdirSync(writable);
      if (asRoot) chownSync(writable, ORDINARY, ORDINARY);
      const mounts = [{ source: writable, target: '/data', readOnly: false }];
      const call: Call = ['probe/run', { file: '/usr/bin/perl', args: ['-e', SET_ID_PROGRAMS] }];
      const [answer] = attack([call], { spec: { mounts } });
      expect(answer).toMatchObject({ stdout: 'plain=ok setuid=1 setgid=1 opened=1 temporary=1 made=1 ' });
      const modes = readdirSync(writable).map((name) => statSync(path.join(writable, name)).mode & 0o7777);
      expect(modes).toEqual([0o755]);
    });

    test('steers no program that still has rights through its environment', () => {
      const env = { LD_PRELOAD: '/app/evil.so', LD_DEBUG: 'libs', NODE_OPTIONS: '--title=inside' };
      const [environment, title] = attack(
        [
          ['probe/env', { name: 'LD_PRELOAD' }],
          ['probe/env', { name: 'NODE_OPTIONS' }],
        ],
        { spec: { env } },
      );
      expect(environment).toBe('/app/evil.so');
      expect(title).toBe('--title=inside');
      const log = execFileSync('/bin/sh', [
        '-c',
        `cat ${directory}/data/sandbox/*/output.log 2>/dev/null || true`,
      ]);
      expect(String(log)).not.toContain('setpriv');
    });

    test('is root inside only when the person says so, and even then cannot steer the kernel', () => {
      const [identity, written] = attack(
        [['probe/identity'], ['probe/write', { path: '/proc/sys/kernel/core_pattern', text: 'x' }]],
        { spec: { user: 'root' } },
      );
      expect(identity).toMatchObject({ uid: 0 });
      expect(written).toMatchObject({ code: 'EROFS' });
    });

    test.skipIf(!slirp.available)(
      title('reaches no loopback service, abstract socket or other workload with a network', slirp),
      async () => {
        const name = `skep-attack-${process.pid}-${uid}`;
        const listeners = await Promise.all([
          listening({ port: 0, host: '127.0.0.1' }),
          listening({ path: `\0${name}` }),
        ]);
        try {
          const address = listeners[0]?.address();
          const port = typeof address === 'object' && address !== null ? address.port : 0;
          const calls: Call[] = ['127.0.0.1', '10.0.2.2', 'localhost'].map((host) => [
            'probe/connect',
            { host, port },
          ]);
          const [interfaces, ...refused] = attack(
            [['probe/interfaces'], ...calls, ['probe/connect', { path: `\0${name}` }]],
            { spec: { network: 'bridge' } },
          );
          expect(interfaces).toEqual(['lo', 'tap0']);
          expect(refused).toHaveLength(4);
          for (const answer of refused) expect(answer).toMatchObject({ code: expect.stringMatching(/^E/) });
        } finally {
          for (const one of listeners) one.close();
        }
      },
    );

    test.skipIf(!slirp.available)(
      title('reaches no loopback service by a socket that is bound to its interface', slirp),
      async () => {
        const heard: string[] = [];
        const server = net.createServer((socket) => {
          heard.push('connection');
          socket.destroy();
        });
        const datagrams = createSocket('udp4').on('message', (message) => void heard.push(String(message)));
        try {
          await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
          const { port } = server.address() as net.AddressInfo;
          await new Promise<void>((resolve) => void datagrams.bind(port, '127.0.0.1', resolve));
          const call: Call = ['probe/run', { file: '/usr/bin/perl', args: ['-e', BOUND_SOCKETS, String(port)] }]; // prettier-ignore
          expect(attack([call], { spec: { network: 'bridge' } })).toMatchObject([
            { stdout: 'bound bound asked', stderr: '' },
          ]);
          // Ours come after whatever the server sent.
          datagrams.send('ours', port, '127.0.0.1');
          await once(net.connect(port, '127.0.0.1').resume(), 'close');
          await expect.poll(() => heard).toContain('ours');
          expect(heard.toSorted()).toEqual(['connection', 'ours']);
        } finally {
          server.close();
          datagrams.close();
        }
      },
    );

    test.skipIf(!slirp.available)(
      title('has its own ports on its loopback, and of this machine those that were forwarded to it', slirp),
      async () => {
        const [hostPort, inside] = [await freePort(), await freePort()];
        const ports = [{ hostIp: '127.0.0.1', hostPort, containerPort: inside }];
        const answers = attack(
          [
            ['probe/listen', { port: inside, host: '127.0.0.1', says: 'mine' }],
            ['outside/read', { port: hostPort }],
            ['outside/read', { port: inside }],
          ],
          { spec: { network: 'bridge', ports } },
        );
        expect(answers).toEqual(['listening', 'mine', { code: 'ECONNREFUSED' }]);
      },
    );

    test('gets no program of its own run with rights by a link where a mount is put', () => {
      const [writable, evil] = ['writable', 'evil'].map((name) => path.join(directory, name)) as [string, string]; // prettier-ignore
      mkdirSync(path.join(writable, 'x'), { recursive: true });
      chmodSync(writable, 0o777);
      mkdirSync(evil);
      // As an earlier run of the server leaves it: what is mounted at the link would lie over our own programs.
      symlinkSync('/newroot/skep/bin', path.join(writable, 'x/sub'));
      writeFileSync(path.join(evil, 'setpriv'), '#!/bin/sh\nid -u >/data/who\n', { mode: 0o755 });
      const mounts = [
        { source: writable, target: '/data', readOnly: false },
        { source: evil, target: '/data/x/sub', readOnly: true },
      ];
      expect(() => attack([['probe/identity']], { spec: { mounts } })).toThrow(/lies below "\/data"/);
      expect(existsSync(path.join(writable, 'who'))).toBe(false);
    });

    test('sees of other processes and of the machine only its own', () => {
      const [processes, hostname, interfaces] = attack([
        ['probe/list', { path: '/proc' }],
        ['probe/identity'],
        ['probe/interfaces'],
      ]);
      expect((processes as string[]).filter((name) => /^\d+$/.test(name)).length).toBeLessThan(8);
      expect(hostname).toMatchObject({ hostname: 'skep' });
      expect(interfaces).toEqual(['lo']);
    });
  },
);
