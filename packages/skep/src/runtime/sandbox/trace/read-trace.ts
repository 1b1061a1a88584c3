import path from 'node:path';
import type { SeenPath } from '../../runtime.ts';

/** Longer lines are of nothing that has a path: the kernel takes 4096 bytes, and each may be written as four characters. */
const MAX_LINE_CHARACTERS = 64 * 1024;
/** As many paths as a server may make its tracer remember, and programs that are in the middle of a call. */
const MAX_PATHS = 2_000;
const MAX_UNFINISHED = 4_096;

/** What a call does with its paths, in their order: looks, changes, or decides by its flags; `-` is no path of its own. */
type Use = 'look' | 'change' | 'flags' | '-';

const CALLS: ReadonlyMap<string, readonly Use[]> = new Map<string, readonly Use[]>([
  ...named(
    ['look'],
    'stat lstat readlink readlinkat chdir statfs getxattr lgetxattr listxattr llistxattr execve',
  ),
  ...named(
    ['look'],
    'execveat newfstatat fstatat64 stat64 lstat64 statx inotify_add_watch name_to_handle_at',
  ),
  ...named(['flags'], 'open openat openat2 access faccessat faccessat2'),
  ...named(
    ['change'],
    'creat mkdir mkdirat rmdir unlink unlinkat truncate truncate64 chmod fchmodat fchmodat2',
  ),
  ...named(['change'], 'chown lchown fchownat utime utimes futimesat utimensat mknod mknodat'),
  ...named(['change'], 'setxattr lsetxattr removexattr lremovexattr'),
  ...named(['change', 'change'], 'rename renameat renameat2'),
  ...named(['look', 'change'], 'link linkat'),
  ...named(['-', 'change'], 'symlink symlinkat'),
  // A socket of a path (unix(7)).
  ...named(['look'], 'connect'),
  ...named(['change'], 'bind'),
]);

function named(uses: readonly Use[], names: string): [string, readonly Use[]][] {
  return names.split(' ').map((name) => [name, uses]);
}

const CHANGING = /\b(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|W_OK)\b/;
/** A descriptor or nothing before a path, and the path: strace(1) writes what is no plain character as an escape. */
const PATH =
  /(?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?(\{sa_family=AF_UNIX, sun_path=)?"((?:[^"\\]|\\.)*)"(\.\.\.)?/y;
const CALL = /^(\d+) +(?:<\.\.\. )?(\w+)(\(| resumed>)/;
const ENDED = /^(\d+) +\+\+\+ (?:exited|killed) /;
/** Nothing by that name is there; others tell that something is. */
const MISSING = /= -1 (?:ENOENT|ENOTDIR) /;
/** What would have been done with more rights. */
const FORBIDDEN = /= -1 (?:EACCES|EPERM|EROFS) /;
const FAILED = /= -1 E\w+ /;

interface Asked {
  readonly path: string;
  readonly changes: boolean;
}

export interface TraceOptions {
  /** The first program inside, as it is called there: what was done before it is none of its. */
  readonly program: string;
  /** Where it begins. */
  readonly cwd: string;
  /** Absolute paths inside that are remembered as a whole. */
  readonly whole: readonly string[];
  /** Absolute paths inside below which nothing is remembered. */
  readonly ignored: readonly string[];
}

/**
 * Reads what strace(1) writes (`-f -y -e trace=%file,connect,bind`), line by line, of a server that may do its worst to mislead: a path is
 * only ever what stands between the quotes that strace wrote. Remembers a bounded number of paths.
 */
export class TraceReader {
  readonly #options: TraceOptions;
  readonly #paths = new Map<string, SeenPath>();
  readonly #unfinished = new Map<string, readonly Asked[]>();
  #rest = '';
  #first: string | undefined;
  /** The first program was seen to end. */
  ended = false;
  /** There was more than is remembered. */
  overflowed = false;

  constructor(options: TraceOptions) {
    const whole = options.whole.toSorted((one, other) => other.length - one.length);
    this.#options = { ...options, whole };
  }

  get paths(): ReadonlyMap<string, SeenPath> {
    return this.#paths;
  }

  /** Takes the next part of the trace, which may end within a line. */
  write(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > MAX_LINE_CHARACTERS) {
      this.#rest = '';
      this.overflowed = true;
    }
    for (const line of lines) this.#line(line);
  }

  #line(line: string): void {
    const [, ended] = ENDED.exec(line) ?? [];
    if (ended !== undefined && ended === this.#first) this.ended = true;
    const [before, pid = '', name = '', how] = CALL.exec(line) ?? [];
    const uses = CALLS.get(name);
    if (before === undefined || uses === undefined) return;
    if (how !== '(') return this.#resumed(pid, line);
    const args = line.slice(before.length);
    const asked = askedPaths(args, uses, this.#options.cwd);
    if (!this.#isInside(pid, name, asked)) return;
    if (!line.endsWith('<unfinished ...>')) return this.#note(asked, line);
    if (this.#unfinished.size < MAX_UNFINISHED) this.#unfinished.set(pid, asked);
    else this.overflowed = true;
  }

  #resumed(pid: string, line: string): void {
    const asked = this.#unfinished.get(pid);
    this.#unfinished.delete(pid);
    if (asked !== undefined) this.#note(asked, line);
  }

  /** From the moment when the sandbox is made and its program takes the place of what made it. */
  #isInside(pid: string, name: string, [asked]: readonly Asked[]): boolean {
    if (this.#first !== undefined) return true;
    if (name === 'execve' && asked?.path === this.#options.program) this.#first = pid;
    return this.#first !== undefined;
  }

  #note(asked: readonly Asked[], line: string): void {
    const { whole, ignored } = this.#options;
    const result = line.slice(line.lastIndexOf(') '));
    const isMissing = MISSING.test(result);
    for (const { path: at, changes } of asked) {
      const mount = whole.find((one) => isAtOrBelow(at, one));
      if (mount === undefined && ignored.some((one) => isAtOrBelow(at, one))) continue;
      const changed = changes && (!FAILED.test(result) || FORBIDDEN.test(result) || mount === undefined);
      this.#remember(mount ?? at, { changes: changed, there: mount !== undefined || !isMissing });
    }
  }

  #remember(at: string, seen: SeenPath): void {
    const known = this.#paths.get(at);
    if (known === undefined && this.#paths.size >= MAX_PATHS && !this.#options.whole.includes(at)) {
      this.overflowed = true;
      return;
    }
    this.#paths.set(at, {
      changes: seen.changes || known?.changes === true,
      there: seen.there || known?.there === true,
    });
  }
}

export const isAtOrBelow = (at: string, directory: string): boolean =>
  at === directory || at.startsWith(directory.endsWith('/') ? directory : `${directory}/`);

/** The paths of one call, absolute; one that is not whole, or relative to what is no directory, is left out. */
function askedPaths(args: string, uses: readonly Use[], cwd: string): readonly Asked[] {
  const asked: Asked[] = [];
  let at = 0;
  for (const use of uses) {
    PATH.lastIndex = at;
    const [found, from, socket, text, cut] = PATH.exec(args) ?? [];
    if (found === undefined || text === undefined) break;
    at += found.length + ', '.length;
    const named = decoded(text);
    const directory = from === undefined || socket !== undefined ? cwd : decoded(from);
    if (use === '-' || named === '' || cut !== undefined || !directory.startsWith('/')) continue;
    const changes = use === 'change' || (use === 'flags' && CHANGING.test(args.slice(at)));
    const absolute = path.posix.resolve(directory, named);
    asked.push({ path: absolute, changes });
  }
  return asked;
}

const ESCAPES: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, v: 11, f: 12, a: 7, b: 8 };

/** A text as strace(1) writes it, with octal and other escapes of C, read as UTF-8. */
function decoded(text: string): string {
  if (!text.includes('\\')) return text;
  const bytes: number[] = [];
  for (const [part, octal, hex, letter] of text.matchAll(/\\(?:([0-7]{1,3})|x([\da-f]{2})|(.))|[^\\]+/gs)) {
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8) & 255);
    else if (hex !== undefined) bytes.push(Number.parseInt(hex, 16));
    else if (letter !== undefined) bytes.push(ESCAPES[letter] ?? letter.codePointAt(0) ?? 0);
    else bytes.push(...Buffer.from(part));
  }
  return Buffer.from(bytes).toString('utf8');
}
