import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { devNull } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { Places } from '@skep/core/files/places.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { coverInherited, inheritedDescriptors } from '../runtime/sandbox/inherited-descriptors.ts';
import { readAnswer, readLines, toFailure, type Answer } from './protocol.ts';

/** How to start this program again. */
export interface Program {
  readonly node: string;
  /** Absolute path of the script that was started. */
  readonly entry: string;
  readonly version: string;
}

/** Paths among them that programs read against their working directory, which the supervisor does not share. */
const PATHS = new Set([
  'DOCKER_CONFIG',
  'DOCKER_CERT_PATH',
  'KUBECONFIG',
  'NODE_EXTRA_CA_CERTS',
  'SKEP_SECRETS_PASSWORD_FILE',
  'SSL_CERT_FILE',
  'NODE_COMPILE_CACHE',
  'TMPDIR',
  'TEMP',
  'TMP',
]);

/**
 * Variables that say where things are, never what is secret: places, the engine or cluster, certificates, the store of
 * secrets. A service that starts the supervisor at boot writes these down.
 */
export const WHERE_THINGS_ARE: readonly string[] = [
  'PATH',
  'XDG_CONFIG_HOME',
  'XDG_STATE_HOME',
  'XDG_DATA_HOME',
  'XDG_CACHE_HOME',
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_CONFIG',
  'DOCKER_CERT_PATH',
  'DOCKER_TLS',
  'DOCKER_TLS_VERIFY',
  'KUBECONFIG',
  'SKEP_KUBE_NAMESPACE',
  'SKEP_RUNTIME',
  'SKEP_FRONT_PORT',
  'SKEP_DOCKER_SOCKET',
  'SKEP_PODMAN_SOCKET',
  'SKEP_COLIMA_SOCKET',
  'SKEP_EGRESS_IMAGE',
  'SKEP_SECRETS_PROVIDER',
  'SKEP_SECRETS_PASSWORD_FILE',
  'SKEP_DISABLE_ENV_FALLBACK',
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
];

/**
 * Those, and what belongs to one session or machine. Everything else of the caller's environment stays out of a process
 * that lives for weeks and whose environment can be read.
 */
const KEPT = new Set([
  ...WHERE_THINGS_ARE,
  ...PATHS,
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'LC_ALL',
  'TZ',
  'LOCALAPPDATA',
  'SYSTEMROOT',
  'XDG_RUNTIME_DIR',
  'DOCKER_DEFAULT_PLATFORM',
  'KUBERNETES_SERVICE_HOST',
  'KUBERNETES_SERVICE_PORT',
  'SKEP_DEBUG',
  'DBUS_SESSION_BUS_ADDRESS',
]);

/** The part of an environment that the supervisor gets, with the paths that it names made absolute. */
export function supervisorEnv(caller: Pick<SpawnOptions, 'env' | 'cwd'>): Record<string, string> {
  const kept = Object.entries(withAbsolutePaths(caller)).filter(([name]) => KEPT.has(name));
  return { ...Object.fromEntries(kept), SKEP_DETACHED: '1' };
}

/** Variables of package managers that name a file; npm takes its own in any case. */
const FILES_OF_MANAGERS =
  /^(?:npm_config_(?:userconfig|globalconfig|prefix|cafile)|PIP_CONFIG_FILE|PIP_CERT|REQUESTS_CA_BUNDLE|NETRC)$/i;

/** An environment that means the same in whatever directory it is read. */
export function withAbsolutePaths({ env, cwd }: Pick<SpawnOptions, 'env' | 'cwd'>): Record<string, string> {
  const set = Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return Object.fromEntries(
    set.map(([name, value]) => {
      const isPath = value !== '' && (PATHS.has(name) || FILES_OF_MANAGERS.test(name));
      return [name, isPath ? resolve(cwd, value) : value];
    }),
  );
}

export interface SpawnedSupervisor {
  /** What it tells once it knows; undefined when it ended, or was killed, before. Never rejects. */
  readonly word: Promise<ReadyWord | undefined>;
  /** Resolves when nothing is there any more that would start it again. */
  readonly over: Promise<void>;
}

export interface SpawnOptions {
  readonly program: Program;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What relative paths of the environment start from. */
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  readonly places: Pick<Places, 'supervisorLog'>;
}

/** Where a supervisor tells whoever started it that it can be asked, or why it never will be. */
export const READY_FD = 3;

/**
 * Starts a supervisor and its watcher in a session of their own, away from the terminal, with their output in the log
 * file. They get three streams, the descriptor to tell that it is up, and nothing else that is open here: they would hold
 * it for weeks, a lock of the user's shell among it.
 */
export async function spawnSupervisor(options: SpawnOptions): Promise<SpawnedSupervisor> {
  const { places, platform } = options;
  // Whoever calls goes on to load the rest of the program, behind which anything that is waited for here would come.
  mkdirSync(dirname(places.supervisorLog), { recursive: true, mode: 0o750 });
  using opened = new DisposableStack();
  const log = opened.adopt(openSync(places.supervisorLog, 'a', 0o600), closeSync);
  const nowhere = opened.adopt(openSync(devNull, 'r+'), closeSync);
  const [command, ...args] = commandLine(options);
  const inherited = platform === 'linux' ? inheritedDescriptors() : [];
  const child = spawn(command, args, {
    detached: true,
    cwd: '/',
    stdio: coverInherited(['ignore', log, log, 'pipe'], inherited, nowhere),
    env: { ...supervisorEnv(options), SKEP_READY_FD: String(READY_FD) },
  });
  const over = once(child, 'exit').then(
    () => {},
    () => {},
  );
  const pipe = child.stdio[READY_FD];
  child.unref();
  if (!(pipe instanceof Socket)) return { word: Promise.resolve(undefined), over };
  pipe.unref();
  return { word: readReadyWord(pipe), over };
}

/** What runs the supervisor itself. What follows `--` is not looked through for flags of Node. */
export function supervisorCommand({ node, entry }: Program): readonly [string, ...string[]] {
  return [node, NEW_OBJECTS, '--', entry, 'supervise'];
}

/** Through the watcher where there is a POSIX shell. */
function commandLine({ program, platform }: SpawnOptions): readonly [string, ...string[]] {
  const supervisor = supervisorCommand(program);
  if (platform === 'win32' || !existsSync(SHELL)) return supervisor;
  return [SHELL, '-c', WATCHER, 'skep-watcher', ...supervisor];
}

/**
 * Bounds what new objects take (decision 0113), in MiB. Flags that change how V8 compiles would cost every start 50 ms,
 * because Node would have to compile itself anew.
 */
const NEW_OBJECTS = '--max-semi-space-size=4';
const SHELL = '/bin/sh';

/** `up`: clients are answered, by this supervisor or by another one that was there already. */
type ReadyWord = { readonly up: true } | Extract<Answer, { readonly error: unknown }>;

async function readReadyWord(pipe: Socket): Promise<ReadyWord | undefined> {
  try {
    const { value: word } = await readLines(pipe).next();
    if (isRecord(word) && word['up'] === true) return { up: true };
    const answer = readAnswer(word);
    return 'error' in answer ? answer : undefined;
  } catch {
    return undefined;
  } finally {
    pipe.destroy();
  }
}

/** Tells it once, to the descriptor that `SKEP_READY_FD` names; nobody may be there to hear. */
export function openReadyWord(env: Readonly<Record<string, string | undefined>>): {
  readonly up: () => void;
  readonly failed: (error: unknown) => void;
} {
  let told = env['SKEP_READY_FD'] !== String(READY_FD);
  const tell = (word: ReadyWord): void => {
    if (told) return;
    told = true;
    try {
      writeSync(READY_FD, `${JSON.stringify(word)}\n`);
    } catch {
      // Whoever started it has gone, or it was started again by its watcher.
    }
  };
  return { up: () => tell({ up: true }), failed: (error) => tell({ error: toFailure(error) }) };
}

/**
 * The program that starts the supervisor and, when it was killed or crashed, starts it again: a POSIX shell that waits,
 * about one megabyte. It ends with a supervisor that ends by itself (nothing to host, retired, another one is there)
 * or by a signal that asks for it (SIGHUP, SIGINT, SIGTERM), with one that told its starter why it cannot come up, and
 * after seven quick deaths in a row, between which it waits longer each time. The first line is what `ps` shows.
 */
export const WATCHER = `# skep watcher: starts the supervisor again when it was killed
n=0
while t=$(date +%s); SKEP_WATCHER=$$ "$@"; c=$?; [ "$c" != 0 ]; do
  [ $(($(date +%s) - t)) -ge 60 ] && n=1
  case $n.$c in *.129|*.130|*.143) exit 0;; 0.1|0.126|0.127) exit 1;; esac
  echo "skep watcher: the supervisor ended with status $c" >&2
  [ "$n" -ge 7 ] && exit 1
  sleep $((n > 1 ? n * n : 0))
  n=$((n + 1))
done`;
