import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import type { Writable } from 'node:stream';
import type { Mount } from '../../permissions/mounts.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { DEFAULT_LIMITS, type Limits } from '../../permissions/limits.ts';
import type { ControlGroups } from './control-groups.ts';
import { coverInherited, type Stdio } from './inherited-descriptors.ts';
import type { NetworkTools } from './own-network.ts';
import { countsAlone, limitOptions } from './process-limits.ts';
import { compileRules, encodeFilter } from './seccomp/compile.ts';
import { RULES, SET_ID_RULES, UNCOUNTED_RULES, type Architecture, type Rule } from './seccomp/rules.ts';
import { bound, procMounts, systemMounts, networkMounts } from './system-mounts.ts';

/** A bubblewrap that was found, and what it can do on this machine. */
export interface Bubblewrap {
  /** Absolute path. */
  readonly program: string;
  readonly version: string;
  /** This release can forbid further user namespaces inside (0.8 and later). */
  readonly locksUserns: boolean;
  /** Real path of setpriv(1): set where Skep runs as root, which the program inside must not be. */
  readonly setpriv: string | undefined;
  /** Real path of prlimit(1), without which the kernel bounds no process inside. */
  readonly prlimit?: string | undefined;
  /** This release can bound what lies in memory as files (0.7 and later). */
  readonly sizesTmpfs?: boolean;
  /** Where groups of processes can be limited together; undefined where this user may not. */
  readonly groups?: ControlGroups | undefined;
  readonly architecture: Architecture;
  /** Descriptors that must not get inside. */
  readonly inherited: readonly number[];
  /** What makes networks of their own for workloads, or why none can be made. */
  readonly network: NetworkTools | string;
}

/** Home directory inside; empty at each start and writable. */
export const CONFINED_HOME = '/home/skep';
/** Where our own programs appear inside. */
const SETPRIV = '/skep/bin/setpriv';
const PRLIMIT = '/skep/bin/prlimit';
/** Runs the command in its arguments: env(1) takes the file's own name for the variable that `-u` removes. */
const BEGIN = '/skep/begin';
const BEGIN_TEXT = '#!/usr/bin/env -u\n';

export interface ConfinedProgram {
  /** Program and arguments as they are called inside. */
  readonly command: readonly string[];
  /** Added to the few variables that every program inside has. */
  readonly env: Readonly<Record<string, string>>;
  /** Everything of the machine that the program sees beside system software, certificates only with a network. */
  readonly mounts: readonly Mount[];
  /** `none`: no network at all; `joined`: the network that bubblewrap itself was started in. */
  readonly network: 'none' | 'joined';
  readonly user: ConfinedUser;
  /** Small files that are made for this program: absolute path inside and content. */
  readonly files?: Readonly<Record<string, string>>;
  /** Links that are made for it: absolute path inside and where it leads. */
  readonly links?: Readonly<Record<string, string>>;
  /** Working directory inside; the home directory when absent. */
  readonly cwd?: string;
  /** Files that run as their owner may be made: only for where nobody reaches them before those bits are taken away. */
  readonly setIdFiles?: boolean;
  /** What it may use; bounds its files in memory and each of its processes. */
  readonly limits?: Limits;
  /** A control group holds its memory and processes. */
  readonly inGroup?: boolean;
  /** The program ends with the one that started it. */
  readonly endsWithParent?: boolean;
}

export interface ConfinedDescriptors {
  readonly stdio: readonly ['ignore' | number, 'ignore' | 'pipe' | number, 'ignore' | 'pipe' | number];
  /** Where bubblewrap writes what became of the program. */
  readonly status?: number;
  /** Held open by bubblewrap, and not by the program, while anything of it runs. */
  readonly life?: number;
  /** The program can be sent sockets: it is a Node, with a channel to this one. */
  readonly channel?: boolean;
  /** In the place of the program's mounts, where some of them are made meanwhile; the program ends where that fails. */
  readonly mounts?: Promise<readonly Mount[]>;
  /** The program waits until `release` is called. */
  readonly held?: boolean;
  /** Starts bubblewrap in surroundings of its own: the command to be used for the given one. */
  readonly within?: (command: readonly string[]) => readonly string[];
}

export interface Confined {
  /** bubblewrap; it ends with the status of the program. */
  readonly child: ChildProcess;
  /** Lets a program go that was to be held. */
  readonly release: () => void;
}

/**
 * Starts one program in a sandbox: nothing of the machine is visible but what is named, no capability, no key, no new
 * namespace and no descriptor of the caller's. The program's environment and the mounts go to bubblewrap over a pipe,
 * because any user can read command lines. What runs the program goes there last of all, once everything else is told and
 * the program is let go: whenever this process dies, nothing runs that was told a part of it (decision 0415).
 */
export function startConfined(
  bubblewrap: Bubblewrap,
  program: ConfinedProgram,
  { stdio, status, life, channel, mounts, held, within = (command) => command }: ConfinedDescriptors,
): Confined {
  // Whoever makes them hears that they cannot be made; here that may be before anybody waits for them.
  mounts?.catch(() => {});
  const descriptors: Stdio[] = [...stdio];
  const inputs = new Map<number, string | Uint8Array>();
  const add = (what: Stdio): string => String(descriptors.push(what) - 1);
  const input = (content: string | Uint8Array): string => {
    const number = add('pipe');
    inputs.set(Number(number), content);
    return number;
  };
  const begin = add('pipe');
  const options = [
    ...Object.entries(identityFiles(program)).flatMap(([at, text]) => file(input(text), '0444', at)),
    ...Object.entries(program.links ?? {}).flatMap(([file, target]) => ['--symlink', target, file]),
    // bubblewrap waits for its content.
    ...file(begin, '0555', BEGIN),
    '--remount-ro',
    '/',
    '--seccomp',
    input(encodeFilter(compileRules(bubblewrap.architecture, rulesFor(program)))),
    ...(status === undefined ? [] : ['--json-status-fd', add(status)]),
    ...(life === undefined ? [] : ['--sync-fd', add(life)]),
  ];
  // Node tells the program its number in a variable.
  if (channel === true) add('ipc');
  const { env, command } = withoutRights(bubblewrap, program);
  options.push(...Object.entries(env).flatMap(([key, value]) => ['--setenv', key, value]));
  const given = add('pipe');
  using opened = new DisposableStack();
  const devNull = opened.adopt(openSync('/dev/null', 'r+'), closeSync);
  const [first = '', ...args] = within([bubblewrap.program, '--args', given, '--', ...command]);
  const child = spawn(first, args, {
    cwd: '/',
    // Nothing of ours goes in, and no LD_PRELOAD of the program reaches bubblewrap itself, which is not confined.
    env: {},
    detached: true,
    stdio: coverInherited(descriptors, bubblewrap.inherited, devNull),
  });
  const told = Array.from(inputs, ([number, content]) => tell(child, number, content));
  const found = (all: readonly Mount[]): Promise<void> => {
    const whole = [...confinedOptions(bubblewrap, { ...program, mounts: all }), ...options];
    return tell(child, Number(given), whole.map((option) => `${option}\0`).join(''));
  };
  const letGo = Promise.withResolvers<void>();
  if (held !== true) letGo.resolve();
  const mounted = mounts === undefined ? found(program.mounts) : mounts.then(found);
  Promise.all([...told, mounted, letGo.promise]).then(
    () => tell(child, Number(begin), BEGIN_TEXT),
    () => child.kill('SIGKILL'),
  );
  return { child, release: letGo.resolve };
}

/** A file with what comes over that pipe, in a directory for everybody (see `bound`). */
const file = (pipe: string, mode: string, target: string): string[] => [
  '--perms',
  '0755',
  '--dir',
  path.posix.dirname(target),
  '--perms',
  mode,
  '--file',
  pipe,
  target,
];

function rulesFor({ setIdFiles, limits, inGroup }: ConfinedProgram): readonly Rule[] {
  const rules = setIdFiles === true ? RULES.filter((rule) => !SET_ID_RULES.includes(rule)) : RULES;
  const isCounted = inGroup === true || (limits !== undefined && limits.memory === 0);
  return isCounted ? rules : [...rules, ...UNCOUNTED_RULES];
}

/** Resolves once bubblewrap's pipe has taken it all, and never where that breaks: its exit is what gets reported. */
function tell(child: ChildProcess, number: number, content: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const pipe = child.stdio[number] as Writable | null | undefined;
    pipe?.on('error', () => {}).end(content, (error?: Error | null) => void (error || resolve()));
  });
}

/** The options without what goes over pipes of its own. */
export function confinedOptions(bubblewrap: Bubblewrap, program: ConfinedProgram): string[] {
  const { memory } = program.limits ?? DEFAULT_LIMITS;
  /** A directory in memory for whoever the program runs as, for this part of its memory at most. */
  const scratch = (directory: string, part: number): string[] => [
    '--perms',
    '1777',
    ...(bubblewrap.sizesTmpfs && memory > 0 ? ['--size', `${Math.floor(memory * part)}`] : []),
    '--tmpfs',
    directory,
  ];
  const groups = [
    ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    program.network === 'none' ? ['--unshare-net'] : [],
    ['--hostname', 'skep', '--new-session', '--cap-drop', 'ALL'],
    program.endsWithParent === true ? ['--die-with-parent'] : [],
    rights(bubblewrap, program.user),
    systemMounts(),
    procMounts(),
    // bubblewrap gives the directory of devices to the user, in memory and without a bound.
    ['--dev', '/dev', ...scratch('/dev/shm', 1 / 4), '--remount-ro', '/dev'],
    [...scratch('/tmp', 1 / 2), '--dir', '/run', ...scratch(CONFINED_HOME, 1 / 2)],
    program.network === 'none' ? [] : networkMounts({ ...program.files, ...program.links }),
    bubblewrap.setpriv === undefined ? [] : bound('--ro-bind', bubblewrap.setpriv, SETPRIV),
    limitCommand(bubblewrap, program).length === 0
      ? []
      : bound('--ro-bind', bubblewrap.prlimit ?? '', PRLIMIT),
    program.mounts.flatMap(({ readOnly, source, target }) =>
      bound(readOnly ? '--ro-bind' : '--bind', source, target),
    ),
    ['--chdir', program.cwd ?? CONFINED_HOME],
  ];
  return groups.flat();
}

/**
 * Started by an ordinary user, a namespace makes that user another one inside. Started by root no namespace would do: the
 * kernel would still know the program as root of the machine. There bubblewrap mounts as root, and the first program
 * inside gives up that user for good before the real one starts.
 */
function rights({ setpriv, locksUserns }: Bubblewrap, { uid, gid }: ConfinedUser): string[] {
  if (setpriv !== undefined) {
    return ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'].flatMap((one) => ['--cap-add', one]);
  }
  const lock = locksUserns ? ['--disable-userns'] : [];
  return ['--unshare-user', ...lock, '--uid', String(uid), '--gid', String(gid)];
}

/** What the command inside begins with so that it is bounded. */
function limitCommand(
  { prlimit, setpriv }: Bubblewrap,
  { limits, inGroup, user }: ConfinedProgram,
): string[] {
  if (prlimit === undefined || limits === undefined) return [];
  const alone = countsAlone(setpriv !== undefined, user);
  return [PRLIMIT, ...limitOptions({ limits, byGroup: inGroup === true, countsAlone: alone }), '--'];
}

/** Variables that steer the loader and the C library of every program, so also of the one that still has rights. */
export const STEERING = /^(?:LD_|GLIBC_|GCONV_PATH$|LOCPATH$|NLSPATH$|MALLOC_)/;

/** The command as bubblewrap is to start it, and the variables it may set for that. */
function withoutRights(bubblewrap: Bubblewrap, program: ConfinedProgram) {
  const variables = Object.entries({ ...surroundings(), ...program.env });
  // Any user can read these, so a person's own are among them only where they must: a program on the way still has rights.
  const isSteering = (key: string) => bubblewrap.setpriv !== undefined && STEERING.test(key);
  // Each program on the way would load files for it.
  const isLanguage = (key: string, value: string) => key === 'LANG' && value === LANGUAGE;
  const isLate = ([key, value]: readonly [string, string]) => isSteering(key) || isLanguage(key, value);
  const late = variables.filter(isLate).map(([key, value]) => `${key}=${value}`);
  const env = Object.fromEntries(variables.filter((one) => !isLate(one)));
  const begin = [BEGIN, ...late, ...program.command];
  return {
    env,
    command: [...limitCommand(bubblewrap, program), ...dropRights(bubblewrap, program), ...begin],
  };
}

function dropRights({ setpriv }: Bubblewrap, { user: { uid, gid } }: ConfinedProgram): string[] {
  if (setpriv === undefined) return [];
  const drop = ['--reuid', String(uid), '--regid', String(gid), '--clear-groups', '--no-new-privs'];
  return [SETPRIV, ...drop, '--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all', '--'];
}

/** The first program inside, as bubblewrap starts it. */
export const firstInside = ({ setpriv }: Bubblewrap, [program = '']: readonly string[]): string =>
  setpriv === undefined ? program : SETPRIV;

const LANGUAGE = 'C.UTF-8';

function surroundings(): Record<string, string> {
  return {
    PATH: ['/skep/bin', '/usr/bin', '/bin'].join(path.posix.delimiter),
    HOME: CONFINED_HOME,
    TMPDIR: '/tmp',
    USER: 'skep',
    LANG: LANGUAGE,
  };
}

function identityFiles({ user: { uid, gid }, files }: ConfinedProgram): Record<string, string> {
  return {
    '/etc/passwd': `skep:x:${uid}:${gid}::${CONFINED_HOME}:/bin/sh\n`,
    '/etc/group': `skep:x:${gid}:\n`,
    ...files,
  };
}
