import path from 'node:path';
import type { WorkloadSpec } from '../runtime.ts';
import type { Mount } from '../../permissions/mount-declaration.ts';
import type { ConfinedProgram, ConfinedNetwork } from './confine.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { APP, NODE } from './package-program.ts';

export interface Confinement {
  readonly spec: WorkloadSpec;
  /** Host directory of the package tree. */
  readonly tree: string;
  /** Real path of the Node binary. */
  readonly node: string;
  /** The package's program as the sandbox sees it. */
  readonly command: readonly string[];
  readonly user: ConfinedUser;
  readonly network: ConfinedNetwork;
  /** See `ConfinedProgram.files`. */
  readonly files: Readonly<Record<string, string>>;
  /** What the server may write and finds again. */
  readonly state: readonly Mount[];
}

/** One workload as a confined program: its package, the running Node, and the mounts that were asked for. */
export function confinedWorkload(confinement: Confinement): ConfinedProgram {
  const { spec, tree, node, command, user, network, files, state } = confinement;
  return {
    command: [...command, ...spec.args],
    env: {
      PATH: [path.posix.dirname(NODE), `${APP}/node_modules/.bin`, '/usr/bin', '/bin'].join(':'),
      NODE_ENV: 'production',
      ...spec.env,
    },
    mounts: [
      { source: node, target: NODE, readOnly: true },
      { source: tree, target: APP, readOnly: true },
      ...state,
      ...spec.mounts,
    ],
    network,
    user,
    files,
  };
}
