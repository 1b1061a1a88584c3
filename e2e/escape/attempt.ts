import { arch } from 'node:os';

/** What attempts are told of where they run, as `name=value`: paths, ports, numbers of processes and system calls. */
export type Facts = Readonly<Record<string, string | number>>;

/** One way out of confinement: a program that prints `escaped` where it works, with what it got. */
export interface Attempt {
  readonly name: string;
  readonly by: 'node' | 'perl' | 'sh';
  readonly code: string;
  /** Who gets there unconfined on any Linux; absent: everybody. */
  readonly open?: 'root' | 'ordinary';
  /** Unconfined it depends on how the kernel was built or set, so that is told and not required. */
  readonly kernel?: true;
  /** Where it means something; absent: everywhere. */
  readonly on?: 'sandbox' | 'engine';
}

const PRELUDES: Readonly<Record<Attempt['by'], string>> = {
  node: `const f = Object.fromEntries(process.argv.slice(1).map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]));
const fs = require('node:fs'); const net = require('node:net');
const got = (what) => process.stdout.write('escaped: ' + String(what).slice(0, 80) + '\\n');
const has = (text) => { const found = /TOKEN-[a-z-]+/.exec(String(text)); if (found) got(found[0]); };
const reads = (path) => has(fs.readFileSync(path, 'latin1'));
const asks = (where) => { const socket = net.connect(where); socket.setTimeout(2000, () => socket.destroy()); socket.on('data', has).on('error', () => {}); };
`,
  perl: `my %f = map { split /=/, $_, 2 } @ARGV;
sub got { print "escaped: @_\\n" }
sub done { my $r = syscall(shift, @_); got($r) if $r != -1; $r }
sub let { my $r = syscall(shift, @_); got($! + 0) if $r != -1 || !grep { $_ == $! + 0 } (1, 13, 38); $r }
`,
  sh: `for one in "$@"; do export "f_$one"; done
got() { echo "escaped: $*"; }
`,
};

/** The command of an attempt, as it is run in and out of confinement alike. */
export function commandOf(
  { by, code }: Attempt,
  facts: Facts,
): readonly [file: string, args: readonly string[]] {
  const given = Object.entries({ ...facts, ...SYSTEM_CALLS }).map(([name, value]) => `${name}=${value}`);
  const text = `${PRELUDES[by]}${code}`;
  if (by === 'sh') return ['sh', ['-c', text, 'sh', ...given]];
  return by === 'node' ? ['node', ['-e', text, ...given]] : ['perl', ['-e', text, ...given]];
}

/** What `probe/run`, or the shell of a person, gave. */
export const hasEscaped = (answer: unknown): boolean =>
  /^escaped: /m.test(JSON.parse(JSON.stringify(answer ?? '')).stdout ?? '');

const numbers = (x64: number, arm64: number): number => (arch() === 'arm64' ? arm64 : x64);

/** As attempts name them, by the number of this processor. */
const SYSTEM_CALLS: Facts = {
  s_mount: numbers(165, 40),
  s_umount2: numbers(166, 39),
  s_chroot: numbers(161, 51),
  s_unshare: numbers(272, 97),
  s_setns: numbers(308, 268),
  s_io_uring_setup: 425,
  s_bpf: numbers(321, 280),
  s_perf_event_open: numbers(298, 241),
  s_userfaultfd: numbers(323, 282),
  s_keyctl: numbers(250, 219),
  s_add_key: numbers(248, 217),
  s_request_key: numbers(249, 218),
  s_ptrace: numbers(101, 117),
  s_pidfd_open: 434,
  s_pidfd_getfd: 438,
  s_open_by_handle_at: numbers(304, 265),
  s_finit_module: numbers(313, 273),
  s_kexec_load: numbers(246, 104),
  s_sethostname: numbers(170, 161),
  s_reboot: numbers(169, 142),
  s_mknodat: numbers(259, 33),
  s_swapon: numbers(167, 224),
  s_acct: numbers(163, 89),
  s_open_tree: 428,
  s_fsopen: 430,
  s_socket: numbers(41, 198),
  s_clone3: 435,
};
