import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { compiledAhead } from './compile-ahead.ts';
import type { WorkloadParts } from './launch.ts';
import { treeProgram } from './package-trees.ts';

/** What a tree brings to a start of its server by this user. Throws as `treeProgram`. */
export async function treeParts(
  tree: string,
  user: ConfinedUser,
): Promise<Pick<WorkloadParts, 'command' | 'compiled'>> {
  const { command, env, needs } = await treeProgram(tree);
  const ahead = await compiledAhead(tree, user);
  const runsOn = needs.map((file) => ({ source: file, target: file, readOnly: true }));
  return { command, compiled: { mounts: [...runsOn, ...ahead.mounts], env: { ...env, ...ahead.env } } };
}
