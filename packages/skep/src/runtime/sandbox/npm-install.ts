import path from 'node:path';
import { bridgeScript } from '../gateway/bridge.ts';
import { npmFailure } from '../npm/failure.ts';
import { npmGateway, type GatewayOptions } from '../npm/gateway.ts';
import { npmRoot } from '../npm/program.ts';
import type { Bubblewrap } from './confine.ts';
import { INSIDE, installConfined } from './confined-install.ts';
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

const [NPM, TREE] = ['/skep/npm', '/stage/tree'];

/**
 * Installs a package into `<stage>/tree` by npm in a sandbox of its own; scripts of packages do not run here either.
 * Throws `runtime/package-not-found`, `runtime/prefetch-failed` or `runtime/aborted`.
 */
export async function npmInstall(install: NpmInstall): Promise<void> {
  const { bubblewrap, specifier, stage, signal, node, npm, upstream } = install;
  await using gateway = npmGateway({ ...install, address: GATEWAY });
  const settings = Object.entries({ ...SETTINGS, ...upstream.versionChoice });
  const cli = `${NPM}/bin/npm-cli.js`;
  const result = await installConfined({
    bubblewrap,
    gateway,
    stage,
    specifier,
    signal,
    manager: 'npm',
    bridge: bridgeScript(INSIDE.socket, Number(new URL(GATEWAY).port)),
    writable: ['tree', 'tree/package.json'],
    program: {
      command: [NODE, '--require', INSIDE.bridge, cli, 'install', '--no-save', '--', specifier],
      env: Object.fromEntries(settings.map(([key, value]) => [`npm_config_${key}`, value])),
      mounts: [
        { source: node, target: NODE, readOnly: true },
        { source: npmRoot(npm), target: NPM, readOnly: true },
        { source: path.join(stage, 'tree'), target: TREE, readOnly: false },
      ],
      cwd: TREE,
    },
  });
  if (result.status !== 0) throw gateway.failure ?? npmFailure(specifier, result.said);
}

/** A package that does not exist must be known in seconds; nothing but errors is printed. */
const SETTINGS: Readonly<Record<string, string>> = {
  registry: GATEWAY,
  cache: INSIDE.cache,
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
