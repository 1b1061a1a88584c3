import { existsSync } from 'node:fs';
import { arch } from 'node:os';
import path from 'node:path';
import type { Glance } from '../environment.ts';
import { findProgram } from './find-program.ts';
import { PROOF_FILE } from './places.ts';

/** Whether the sandbox is there: it is where it was once proved to confine, and may be where bubblewrap is installed. */
export const glanceAtSandbox: Glance = async ({ env, platform, cacheDir }) => {
  const architecture = arch();
  if (platform !== 'linux' || (architecture !== 'x64' && architecture !== 'arm64')) return 'no';
  if (findProgram('bwrap', env) === undefined) return 'no';
  return existsSync(path.join(cacheDir, PROOF_FILE)) ? 'yes' : 'unknown';
};
