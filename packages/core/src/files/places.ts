import { createHash } from 'node:crypto';
import { posix, win32 } from 'node:path';

export interface PlacesInput {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Home directory of the user, absolute. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Directory for temporary files, used where there is no runtime directory. */
  readonly temp: string;
  /** Numeric user id; keeps users apart in a shared temporary directory. Absent on Windows. */
  readonly uid?: number;
}

/** Every place Skep keeps something, as absolute paths (spec run-workload §0.1). Nothing is created here. */
export interface Places {
  readonly configDir: string;
  readonly configFile: string;
  readonly ignoreFile: string;
  readonly stateDir: string;
  readonly runConfigsDir: string;
  readonly groupsDir: string;
  /** Per-name lock files. */
  readonly locksDir: string;
  readonly dataDir: string;
  readonly statusesDir: string;
  readonly logsDir: string;
  readonly supervisorLog: string;
  readonly cacheDir: string;
  /** Only of this user, gone after a reboot: sockets and overlays. */
  readonly runtimeDir: string;
  /** Unix socket, or a named pipe on Windows. */
  readonly supervisorSocket: string;
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
  const runtimeDir = runtimeDirectory(input, path, { base: xdg('XDG_RUNTIME_DIR'), stateDir });
  return {
    configDir,
    configFile: path.join(configDir, 'config.yaml'),
    ignoreFile: path.join(configDir, 'skepignore'),
    stateDir,
    runConfigsDir: path.join(stateDir, 'runconfigs'),
    groupsDir: path.join(stateDir, 'groups'),
    locksDir: path.join(stateDir, 'locks'),
    dataDir,
    statusesDir: path.join(dataDir, 'statuses'),
    logsDir: path.join(dataDir, 'logs'),
    supervisorLog: path.join(dataDir, 'logs', 'supervisor.log'),
    cacheDir,
    runtimeDir,
    supervisorSocket:
      input.platform === 'win32' ? `\\\\.\\pipe\\${pipeName(stateDir)}` : path.join(runtimeDir, SOCKET),
  };
}

const SOCKET = 'supervisor.sock';

/** Longest path of a Unix socket, in bytes without the NUL that ends it (`sun_path` of unix(7) and unix(4)). */
const longestSocket = (platform: NodeJS.Platform): number => (platform === 'linux' ? 107 : 103);

interface RuntimeBase {
  /** XDG_RUNTIME_DIR. */
  readonly base: string | undefined;
  readonly stateDir: string;
}

/** A socket whose path would be too long lies in a short directory instead, which the state directory gives its name. */
function runtimeDirectory(input: PlacesInput, path: typeof posix, { base, stateDir }: RuntimeBase): string {
  const owner = input.uid === undefined ? 'skep' : `skep-${String(input.uid)}`;
  const wanted = base === undefined ? path.join(input.temp, owner) : path.join(base, 'skep');
  const fits = (directory: string): boolean =>
    Buffer.byteLength(path.join(directory, SOCKET)) <= longestSocket(input.platform);
  if (input.platform === 'win32' || fits(wanted)) return wanted;
  const hash = createHash('sha256').update(stateDir).digest('hex').slice(0, 12);
  const short = path.join(input.temp, `${owner}-${hash}`);
  return fits(short) ? short : path.join('/tmp', `${owner}-${hash}`);
}

function localBase(input: PlacesInput, path: typeof posix): (unixDefault: string) => string {
  if (input.platform !== 'win32') return (unixDefault) => path.join(input.home, unixDefault);
  const base = input.env['LOCALAPPDATA'] ?? path.join(input.home, 'AppData', 'Local');
  // One base for state, data and cache; `skep` is joined after, so each kind keeps a folder of its own.
  return (unixDefault) => path.join(base, path.basename(unixDefault));
}

/** Pipe names are global to the machine and may not hold backslashes: derive one from the user's state directory. */
function pipeName(stateDir: string): string {
  return `skep-${stateDir.replace(/[^A-Za-z0-9]+/gu, '-')}`;
}
