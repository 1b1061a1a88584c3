import { existsSync } from 'node:fs';
import { arch } from 'node:os';
import path from 'node:path';
import type { Glance } from '../environment.ts';
import { findProgram } from '../find-program.ts';
import { PROOF_FILE } from './places.ts';

/**
 * Whether the sandbox is there: where it was once proved to confine it is not tried again, and where it never was, which
 * is the first time that somebody looks, it is tried now.
 */
export const glanceAtSandbox: Glance = async ({ env, platform, cacheDir }) => {
  const architecture = arch();
  if (platform !== 'linux' || (architecture !== 'x64' && architecture !== 'arm64')) return 'no';
  if (findProgram('bwrap', env) === undefined) return 'no';
  if (existsSync(path.join(cacheDir, PROOF_FILE))) return 'yes';
  const { findBubblewrap, unlessUnavailable } = await import('./bubblewrap.ts');
  const tried = await unlessUnavailable(findBubblewrap({ env, platform, cacheDir }));
  return 'found' in tried ? 'yes' : 'no';
};
