import { spawn } from 'node:child_process';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** How to start this program again. */
export interface Program {
  readonly node: string;
  /** Absolute path of the script that was started. */
  readonly entry: string;
  readonly version: string;
}

/**
 * Variables the supervisor needs: to find its places, the engine, its certificates and proxies. Everything else of the
 * caller's environment stays out of a process that lives for weeks and whose environment can be read.
 */
const KEPT = new Set([
  'HOME',
  'USER',
  'LOGNAME',
  'PATH',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'TEMP',
  'TMP',
  'LOCALAPPDATA',
  'SYSTEMROOT',
  'XDG_CONFIG_HOME',
  'XDG_STATE_HOME',
  'XDG_DATA_HOME',
  'XDG_CACHE_HOME',
  'XDG_RUNTIME_DIR',
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_CONFIG',
  'DOCKER_CERT_PATH',
  'DOCKER_TLS_VERIFY',
  'SKEP_RUNTIME',
  'SKEP_DOCKER_SOCKET',
  'SKEP_PODMAN_SOCKET',
  'SKEP_COLIMA_SOCKET',
  'SKEP_DEBUG',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'NODE_COMPILE_CACHE',
]);

/** The part of an environment that the supervisor gets. */
export function supervisorEnv(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept = Object.entries(env).filter(
    (pair): pair is [string, string] => KEPT.has(pair[0]) && pair[1] !== undefined,
  );
  return { ...Object.fromEntries(kept), SKEP_DETACHED: '1' };
}

export interface SpawnedSupervisor {
  /** Resolves with the exit status if it ends while we still look. */
  readonly exited: Promise<number>;
}

export interface SpawnOptions {
  readonly program: Program;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logPath: string;
}

/** Starts a supervisor in its own session, away from the terminal, with its output in its log file. */
export async function spawnSupervisor({ program, env, logPath }: SpawnOptions): Promise<SpawnedSupervisor> {
  await mkdir(dirname(logPath), { recursive: true, mode: 0o750 });
  const log = await open(logPath, 'a', 0o600);
  try {
    const child = spawn(program.node, [program.entry, 'supervise'], {
      detached: true,
      cwd: '/',
      stdio: ['ignore', log.fd, log.fd],
      env: supervisorEnv(env),
    });
    const exited = new Promise<number>((resolve, reject) => {
      child.once('exit', (code) => resolve(code ?? 1));
      child.once('error', (cause) =>
        reject(
          new SkepError('supervisor/unreachable', { message: 'the supervisor cannot be started', cause }),
        ),
      );
    });
    child.unref();
    return { exited };
  } finally {
    await log.close();
  }
}
