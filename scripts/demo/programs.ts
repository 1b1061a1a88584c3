import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

/** Runs the two programs from source, in surroundings that touch nothing of the user's own. */
const root = path.resolve(import.meta.dirname, '../..');

/** What was printed is empty unless the program was asked to be quiet. */
interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Programs {
  /** Runs `skep`; unless it is to be quiet it prints to this terminal, as a user would see it. */
  readonly skep: (args: readonly string[], options?: { readonly quiet?: boolean }) => Promise<Ran>;
  /** Starts `skep-registry` and gives its process. */
  readonly registry: (args: readonly string[]) => ChildProcess;
}

/** `frontPort`: where all servers are served; the usual one may be in use by the person's own Skep. */
export function programsIn(home: string, frontPort: number): Programs {
  const env = {
    ...process.env,
    XDG_CONFIG_HOME: path.join(home, 'config'),
    XDG_STATE_HOME: path.join(home, 'state'),
    XDG_DATA_HOME: path.join(home, 'data'),
    XDG_CACHE_HOME: path.join(home, 'cache'),
    XDG_RUNTIME_DIR: path.join(home, 'run'),
    SKEP_FRONT_PORT: String(frontPort),
  };
  return {
    async skep(args, { quiet = false } = {}) {
      const main = path.join(root, 'packages/skep/src/main.ts');
      const child = spawn(process.execPath, ['--', main, ...args], {
        env,
        stdio: quiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
      });
      let stdout = '';
      let stderr = '';
      child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
      child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
      await once(child, 'close');
      return { code: child.exitCode ?? 1, stdout, stderr };
    },
    registry(args) {
      const main = path.join(root, 'packages/registry/src/main.ts');
      return spawn(process.execPath, ['--', main, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    },
  };
}
