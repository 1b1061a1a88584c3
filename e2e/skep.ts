import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { repoRoot } from './require.ts';

export interface SkepResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface SkepOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdio?: readonly ('ignore' | 'pipe' | number)[];
  /** The command as root starts it in other surroundings. */
  readonly through?: (command: readonly string[]) => readonly string[];
}

/** A user of their own: nothing is shared with the person who runs the tests, or with another test. */
export interface TestUser {
  readonly dir: string;
  readonly env: Readonly<Record<string, string>>;
  /** Runs one command to its end. */
  skep(args: readonly string[], options?: SkepOptions): Promise<SkepResult>;
  /** Starts a command that stays. */
  start(args: readonly string[], options?: SkepOptions): ChildProcess;
  /** Pids of this user's supervisors; zombies do not count. */
  supervisors(): readonly number[];
  /** Pids of what starts them again. */
  watchers(): readonly number[];
  /** Kills watchers and supervisors, so that only a command brings one back. */
  killSupervisor(): Promise<void>;
  /** Every file of Skep's but the configuration, relative to the user's directory. */
  leftFiles(): readonly string[];
  /** Removes all workloads and the directory. */
  end(): Promise<void>;
}

/** The packed program under the e2e tests, the sources otherwise. */
export function skepEntry(): string {
  const bundle = process.env['SKEP_TEST_BUNDLE'];
  return bundle === undefined
    ? path.join(repoRoot, 'packages/skep/src/main.ts')
    : path.join(bundle, 'skep/skep.js');
}

/** Someone without any rights, to run as where the tests run as root. */
export const NOBODY = 65_534;

/** Who Skep is run as where the rights of its user matter: the one who runs the tests, and where that is root someone without any. */
export const USERS: readonly (readonly [who: string, uid: number | undefined])[] =
  process.getuid?.() === 0
    ? [
        ['root', undefined],
        ['an ordinary user', NOBODY],
      ]
    : [['an ordinary user', undefined]];

/** `more` wins over the environment made here; `uid` is whom everything runs as, if not the one who runs the tests. */
export function openUser(more: Readonly<Record<string, string>> = {}, uid?: number): TestUser {
  const dir = mkdtempSync(path.join(tmpdir(), 'skep-user-'));
  const at = (name: string): string => path.join(dir, name);
  mkdirSync(at('run'), { mode: 0o700 });
  const entry = uid === undefined ? skepEntry() : ownProgram(dir, uid);
  const env = {
    HOME: dir,
    PATH: process.env['PATH'] ?? '',
    XDG_CONFIG_HOME: at('config'),
    XDG_STATE_HOME: at('state'),
    XDG_DATA_HOME: at('data'),
    XDG_CACHE_HOME: at('cache'),
    XDG_RUNTIME_DIR: at('run'),
    npm_config_cache: at('npm'),
    // Of many homes at once one would have the port, and the others say so.
    SKEP_FRONT_PORT: '0',
    ...machineNpmSettings(),
    ...passedOn('DOCKER_HOST', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'),
    ...more,
  };
  const start = (args: readonly string[], options: SkepOptions = {}): ChildProcess => {
    const { through } = options;
    const become = uid === undefined ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--']; // prettier-ignore
    const command = [process.execPath, '--', entry, ...args];
    const here = ['env', '-C', options.cwd ?? dir];
    const [file = '', ...rest] = through === undefined ? command : through([...here, ...become, ...command]);
    return spawn(file, rest, {
      ...(uid === undefined || through !== undefined ? {} : { uid, gid: uid }),
      cwd: options.cwd ?? dir,
      env: { ...env, ...options.env },
      stdio: [...(options.stdio ?? (['ignore', 'pipe', 'pipe'] as const))],
    });
  };
  const skep = (args: readonly string[], options: SkepOptions = {}): Promise<SkepResult> =>
    ended(start(args, options));
  return {
    dir,
    env,
    skep,
    start,
    supervisors: () => pidsOf(env.XDG_STATE_HOME, isSupervisor),
    watchers: () => pidsOf(env.XDG_STATE_HOME, isWatcher),
    killSupervisor: () => killSupervisors(env.XDG_STATE_HOME),
    leftFiles: () =>
      ['state', 'data', 'cache', 'run'].flatMap((name) => filesIn(at(name)).map((file) => `${name}/${file}`)),
    async end() {
      try {
        const removed = await skep(['rm', '--all', '--data']);
        if (removed.code !== 0) throw new Error(`rm --all failed: ${removed.stderr}`);
      } finally {
        await killSupervisors(env.XDG_STATE_HOME);
        rmSync(dir, { recursive: true, force: true });
      }
    },
  };
}

/** Sends a signal to those that are still there. */
export function signal(pids: readonly number[], how: 'SIGTERM' | 'SIGKILL'): void {
  for (const pid of pids) {
    try {
      process.kill(pid, how);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
}

/** The folder and a copy of the program as that user's own: what was unpacked for the tests others may not read. */
function ownProgram(dir: string, uid: number): string {
  const copy = path.join(dir, 'program');
  cpSync(path.dirname(skepEntry()), copy, { recursive: true });
  execFileSync('chown', ['-R', `${uid}:${uid}`, dir]);
  return path.join(copy, path.basename(skepEntry()));
}

/** The output of a started command when it has ended. */
export function ended(child: ChildProcess): Promise<SkepResult> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** Resolves with everything a started command printed once that contains `text`. */
export function printed(child: ChildProcess, text: string): Promise<string> {
  let all = '';
  return new Promise((resolve, reject) => {
    const look = (chunk: Buffer | string): void => {
      all += String(chunk);
      if (all.includes(text)) resolve(all);
    };
    child.stdout?.on('data', look);
    child.stderr?.on('data', look);
    child.once('close', () => reject(new Error(`ended without printing "${text}": ${all}`)));
  });
}

export interface McpAnswer {
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

/** One MCP request outside the SDK, in a session of its own: initialize, then the method. */
export async function ask(url: string, method: string, params: object = {}): Promise<McpAnswer> {
  const send = (body: object, session?: string): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(session === undefined ? {} : { 'mcp-session-id': session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
  const info = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  };
  const opened = await send({ id: 0, method: 'initialize', params: info });
  const session = opened.headers.get('mcp-session-id') ?? undefined;
  await opened.text();
  if (opened.status !== 200) throw new Error(`initialize answered ${opened.status}`);
  await (await send({ method: 'notifications/initialized' }, session)).text();
  const text = await (await send({ id: 1, method, params }, session)).text();
  const data = /^data: (\{.*\})$/m.exec(text)?.[1] ?? text;
  return JSON.parse(data) as McpAnswer;
}

/** Paths of all that lies below a directory; what goes meanwhile, because a program works there, is left out. */
export function filesIn(directory: string, below = ''): string[] {
  const at = path.join(directory, below);
  try {
    return readdirSync(at, { withFileTypes: true }).flatMap((entry) => {
      const name = path.join(below, entry.name);
      return entry.isDirectory() ? [name, ...filesIn(directory, name)] : [name];
    });
  } catch (error) {
    if (existsSync(at)) throw error;
    return [];
  }
}

const isWatcher = (words: string): boolean => words.includes('\0skep-watcher\0');
const isSupervisor = (words: string): boolean => words.endsWith('\0supervise\0') && !isWatcher(words);

/**
 * Kills the watchers and supervisors with this XDG_STATE_HOME, until there are none. Looks again after every kill: a
 * watcher may have started another one in between. Benches use it without vitest.
 */
export async function killSupervisors(stateHome: string): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const left = [isWatcher, isSupervisor].flatMap((which) => pidsOf(stateHome, which));
    if (left.length === 0) return;
    if (Date.now() > deadline) throw new Error(`still there: ${left.join()}`);
    signal(left, 'SIGKILL');
    await delay(50);
  }
}

function pidsOf(stateHome: string, which: (words: string) => boolean): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const text = (file: string): string => readFileSync(`/proc/${pid}/${file}`, 'utf8');
      return which(text('cmdline')) && text('environ').includes(`XDG_STATE_HOME=${stateHome}\0`);
    } catch {
      // It ended while we looked, or belongs to somebody else.
      return false;
    }
  });
}

export function passedOn(...names: string[]): Record<string, string> {
  const set = names.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(set.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

let npmSettings: Record<string, string> | undefined;

/** Where this machine's npm gets packages from; the test user has no configuration of its own. */
export function machineNpmSettings(): Record<string, string> {
  const get = (key: string): string =>
    execFileSync('npm', ['config', 'get', key], { encoding: 'utf8' }).trim();
  if (npmSettings) return npmSettings;
  const cafile = get('cafile');
  npmSettings = {
    npm_config_registry: get('registry'),
    ...(cafile === 'null' ? {} : { npm_config_cafile: cafile }),
  };
  return npmSettings;
}
