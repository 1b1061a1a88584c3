import { addAbortListener, once } from 'node:events';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { bridgeScript } from '../npm/bridge.ts';
import { npmFailure } from '../npm/failure.ts';
import { Gateway, type GatewayOptions } from '../npm/gateway.ts';
import { npmRoot } from '../npm/program.ts';
import type { Bubblewrap } from './confine.ts';
import { startConfined, type ConfinedProgram } from './confine.ts';
import { confinedUser } from './confined-user.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { NODE } from './package-trees.ts';

export interface NpmInstall extends Omit<GatewayOptions, 'address'> {
  readonly bubblewrap: Bubblewrap;
  /** `npm-cli.js`. */
  readonly npm: string;
  /** Real path of the Node binary. */
  readonly node: string;
  /** A directory of this install alone; `tree` in it holds a package.json already. */
  readonly stage: string;
  /** `name@version`. */
  readonly specifier: string;
  readonly signal: AbortSignal;
}

/** Where npm finds the gateway: on the loopback interface of a network that has nothing else. */
export const GATEWAY = 'http://127.0.0.1:4873/';

const INSIDE = { npm: '/skep/npm', bridge: '/skep/bridge.cjs', socket: '/skep/registry', stage: '/stage' };

/**
 * Installs a package into `<stage>/tree` by npm in a sandbox of its own: whatever npm, git or a package's settings can be
 * bent to do, it happens where there is no file of the user, no login and no network but the gateway to the registries.
 * Scripts of packages do not run here either. Throws `runtime/package-not-found`, `runtime/prefetch-failed` or
 * `runtime/aborted`.
 */
export async function npmInstall(install: NpmInstall): Promise<void> {
  const { bubblewrap, specifier, stage, signal } = install;
  const at = (name: string) => path.join(stage, name);
  const asRoot = bubblewrap.setpriv !== undefined;
  const user = await confinedUser({ asRoot, name: 'npm', mounts: [] });
  await using gateway = new Gateway({ ...install, address: GATEWAY });
  await mkdir(at('cache'));
  const bridge = bridgeScript(INSIDE.socket, Number(new URL(GATEWAY).port));
  await writeFile(at('bridge.cjs'), bridge, { mode: 0o644 });
  await gateway.listen(at('registry'));
  const given = ['tree', 'tree/package.json', 'cache', 'registry'];
  if (asRoot) await Promise.all(given.map((name) => chown(at(name), user.uid, user.gid)));
  const result = await runToItsEnd(bubblewrap, npmProgram(install, user), signal);
  if (result.status !== 0) throw gateway.failure ?? npmFailure(specifier, result.said);
}

function npmProgram(
  { stage, node, npm, upstream, specifier }: NpmInstall,
  user: ConfinedUser,
): ConfinedProgram {
  const of = (name: string, target: string, readOnly = true) => ({
    source: path.join(stage, name),
    target,
    readOnly,
  });
  const settings = Object.entries({ ...SETTINGS, ...upstream.versionChoice });
  return {
    command: [
      NODE,
      '--require',
      INSIDE.bridge,
      `${INSIDE.npm}/bin/npm-cli.js`,
      'install',
      '--no-save',
      '--',
      specifier,
    ],
    env: Object.fromEntries(settings.map(([key, value]) => [`npm_config_${key}`, value])),
    mounts: [
      { source: node, target: NODE, readOnly: true },
      { source: npmRoot(npm), target: INSIDE.npm, readOnly: true },
      of('bridge.cjs', INSIDE.bridge),
      of('registry', INSIDE.socket),
      of('tree', `${INSIDE.stage}/tree`, false),
      of('cache', `${INSIDE.stage}/cache`, false),
    ],
    network: 'none',
    user,
    cwd: `${INSIDE.stage}/tree`,
    // npm leaves files out that it cannot make as they were packed; `checkTree` takes the bits away.
    setIdFiles: true,
    endsWithParent: true,
  };
}

const KEPT_LINES = 200;

/** Any exit status is a result, with the last lines that were said. Throws `runtime/aborted`. */
export async function runToItsEnd(
  bubblewrap: Bubblewrap,
  program: ConfinedProgram,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly said: string }> {
  if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
  const { child } = startConfined(bubblewrap, program, { stdio: ['ignore', 'ignore', 'pipe'] });
  const lines: string[] = [];
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
  });
  using _ = addAbortListener(signal, () => void child.kill('SIGKILL'));
  // `once` rejects with an `error`.
  const [code] = (await once(child, 'close')) as [number | null];
  if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
  return { status: code ?? 1, said: lines.join('\n') };
}

/** A package that does not exist must be known in seconds; nothing but errors is printed. */
const SETTINGS: Readonly<Record<string, string>> = {
  registry: GATEWAY,
  cache: `${INSIDE.stage}/cache`,
  ignore_scripts: 'true',
  omit: 'dev',
  // A git repository that is prepared runs what its own settings name as git. Older releases only know the second.
  allow_git: 'none',
  git: '/bin/false',
  fetch_retries: '1',
  fetch_retry_mintimeout: '1000',
  update_notifier: 'false',
  audit: 'false',
  fund: 'false',
  loglevel: 'error',
  logs_max: '0',
};
