/** A path that a server said it could not use. */
export interface ToldPath {
  readonly path: string;
  /** True where it is there and cannot be written. */
  readonly wantsWrite: boolean;
}

/** A host that a server said it could not find or reach. */
export interface ToldHost {
  readonly host: string;
  readonly port?: number;
}

const MAX_LINES = 200;
const MAX_LINE_CHARACTERS = 1_000;

/** As Node, Python, and Go or a shell say it; the first group is what went wrong, the second the path. */
const PATHS: readonly RegExp[] = [
  /\b(ENOENT|EACCES|EPERM|EROFS)\b[^'"]{0,200}['"](\/[^'"]+)['"]/,
  /\[Errno (2|13|1|30)\][^:]{0,200}: ['"](\/[^'"]+)['"]/,
];
const PATH_FIRST =
  /(\/[^\s:'"]+): (?:cannot [a-z ]+: )?(no such file or directory|permission denied|operation not permitted|read-only file system)/i;
const READ_ONLY = /^(?:EROFS|30|read-only file system)$/i;

/** Absolute paths in the error messages of a server, each once. What it says is hostile: nothing of it is true yet. */
export function toldPaths(lines: readonly string[]): readonly ToldPath[] {
  const told = new Map<string, ToldPath>();
  for (const line of bounded(lines)) {
    const [, path = '', why = ''] = PATH_FIRST.exec(line) ?? [];
    const found = PATHS.map((pattern) => pattern.exec(line)).find((one) => one !== null);
    const [what, at] = found ? [found[1] ?? '', found[2] ?? ''] : [why, path];
    if (at !== '')
      told.set(at, { path: at, wantsWrite: told.get(at)?.wantsWrite === true || READ_ONLY.test(what) });
  }
  return [...told.values()];
}

const HOSTS: readonly RegExp[] = [
  /\b(?:ENOTFOUND|EAI_AGAIN) ([\w.-]+)/,
  /\bhost='([\w.-]+)', port=(\d{1,5})/,
  /\blookup ([\w.-]+)(?: on [\w.:]+)?: /,
  /\b(?:ENETUNREACH|ECONNREFUSED) ([\d.]+):(\d{1,5})/,
  /\bCould not resolve host: ([\w.-]+)/,
];

/** Hosts in the error messages of a server, each once. */
export function toldHosts(lines: readonly string[]): readonly ToldHost[] {
  const told = new Map<string, ToldHost>();
  for (const line of bounded(lines)) {
    for (const pattern of HOSTS) {
      const [, host, port] = pattern.exec(line) ?? [];
      if (host === undefined) continue;
      told.set(`${host}:${port ?? ''}`, { host, ...(port === undefined ? {} : { port: Number(port) }) });
    }
  }
  return [...told.values()];
}

const bounded = (lines: readonly string[]): readonly string[] =>
  lines.slice(-MAX_LINES).map((line) => line.slice(0, MAX_LINE_CHARACTERS));
