import { posix, win32 } from 'node:path';
import { SkepError } from '../errors/skep-error.ts';

export interface PlacesInput {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Home directory of the user, absolute. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Directory for temporary files. */
  readonly temp: string;
}

/**
 * The first that is an absolute path: HOME may be empty or relative, and files would lie wherever a command is run. Throws
 * `usage/invalid-value` when none is.
 */
export function homeDirectory(
  candidates: readonly (string | undefined)[],
  platform: NodeJS.Platform,
): string {
  const path = platform === 'win32' ? win32 : posix;
  const home = candidates.find((one) => one !== undefined && path.isAbsolute(one));
  if (home !== undefined) return home;
  throw new SkepError('usage/invalid-value', {
    message: 'there is no home directory to keep files in: HOME is no absolute path',
    hint: 'set HOME to the absolute path of a directory of yours',
  });
}

/** Where Skep keeps things (docs/behaviour/run.md#files), absolute. Nothing is created here. */
export interface Places {
  readonly configDir: string;
  readonly configFile: string;
  readonly ignoreFile: string;
  readonly stateDir: string;
  readonly runConfigsDir: string;
  /** Run configurations from before the last upgrade of each workload. */
  readonly previousDir: string;
  readonly groupsDir: string;
  /** What Skep wrote into the files of MCP clients. */
  readonly clientsDir: string;
  /** Per-name lock files. */
  readonly locksDir: string;
  readonly dataDir: string;
  readonly statusesDir: string;
  /** What each workload's server said of itself. */
  readonly serversDir: string;
  readonly logsDir: string;
  /** What stays when a workload is removed: a directory per name (docs/behaviour/run.md#data). */
  readonly keptDir: string;
  /** Called as no workload can be, whose log it would be otherwise. */
  readonly supervisorLog: string;
  /** The encrypted secrets. */
  readonly secretsFile: string;
  /** Locks of what lies among the secrets: whoever shares these need not share the state directory. */
  readonly secretLocksDir: string;
  readonly cacheDir: string;
  /** Of the one supervisor of this state directory: its socket, and where it listens. */
  readonly supervisorDir: string;
  /** An empty file and an empty directory, which stand for what workloads must not see. */
  readonly nothingDir: string;
  readonly temp: string;
}

/**
 * Follows the XDG Base Directory Specification 0.8: a variable that is unset, empty or relative falls back to its
 * default. The defaults are the same on macOS; on Windows state, data and cache lie under LOCALAPPDATA, while
 * configuration is `~/.config/skep` everywhere.
 */
export function places(input: PlacesInput): Places {
  const path = input.platform === 'win32' ? win32 : posix;
  const xdg = (name: string): string | undefined => {
    const value = input.env[name];
    return value !== undefined && path.isAbsolute(value) ? value : undefined;
  };
  const local = localBase(input, path);
  const configDir = path.join(xdg('XDG_CONFIG_HOME') ?? path.join(input.home, '.config'), 'skep');
  const stateDir = path.join(xdg('XDG_STATE_HOME') ?? local('.local/state'), 'skep');
  const dataDir = path.join(xdg('XDG_DATA_HOME') ?? local('.local/share'), 'skep');
  const cacheDir = path.join(xdg('XDG_CACHE_HOME') ?? local('.cache'), 'skep');
  return {
    configDir,
    configFile: path.join(configDir, 'config.yaml'),
    ignoreFile: path.join(configDir, 'skepignore'),
    stateDir,
    runConfigsDir: path.join(stateDir, 'runconfigs'),
    previousDir: path.join(stateDir, 'previous'),
    groupsDir: path.join(stateDir, 'groups'),
    clientsDir: path.join(stateDir, 'clients'),
    locksDir: path.join(stateDir, 'locks'),
    dataDir,
    statusesDir: path.join(dataDir, 'statuses'),
    serversDir: path.join(dataDir, 'servers'),
    logsDir: path.join(dataDir, 'logs'),
    keptDir: path.join(dataDir, 'kept'),
    supervisorLog: path.join(dataDir, 'logs', '_supervisor.log'),
    secretsFile: path.join(dataDir, 'secrets_encrypted'),
    secretLocksDir: path.join(dataDir, 'locks'),
    cacheDir,
    supervisorDir: path.join(stateDir, 'supervisor'),
    nothingDir: path.join(stateDir, 'nothing'),
    temp: input.temp,
  };
}

function localBase(input: PlacesInput, path: typeof posix): (unixDefault: string) => string {
  if (input.platform !== 'win32') return (unixDefault) => path.join(input.home, unixDefault);
  const base = input.env['LOCALAPPDATA'] ?? path.join(input.home, 'AppData', 'Local');
  // `skep` is joined after, so state, data and cache keep folders of their own.
  return (unixDefault) => path.join(base, path.basename(unixDefault));
}
