import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { SourcePart } from '../../protocol/build-recipe.ts';
import { findLocalModule, localVersion } from '../go/local-module.ts';
import { userFile } from '../user-file.ts';
import { leftOutBy } from './docker-ignore.ts';

/** They are held in memory, and sent to an engine that may be far away. */
const MAX_BYTES = 256 * 1024 * 1024;

/** The sources of a Go project of this machine as a build is given them. */
export interface LocalContext {
  /** Another one as soon as anything of the sources changes. */
  readonly version: string;
  /** The package in them: `./cmd/server`, or `.`. */
  readonly target: string;
  readonly parts: readonly SourcePart[];
}

/**
 * Reads the module that a directory belongs to, without its history and what its `.dockerignore` leaves out; nothing is
 * written there. Throws as `findLocalModule` and `localVersion` do.
 */
export async function readLocalContext(directory: string, signal: AbortSignal): Promise<LocalContext> {
  const { root, target } = await findLocalModule(directory);
  const leavesOut = leftOutBy((await userFile(path.join(root, '.dockerignore'))) ?? '');
  const parts: SourcePart[] = [];
  let bytes = 0;
  const take = (part: SourcePart): void => {
    parts.push(part);
    bytes += part.kind === 'file' ? part.content.length : 0;
    if (bytes <= MAX_BYTES) return;
    throw new SkepError('runtime/build-failed', {
      message: `the module at "${root}" is larger than 256 MiB`,
      hint: 'name what a build does not need in a .dockerignore beside its go.mod',
    });
  };
  const version = await localVersion({ root }, signal, { leavesOut, take });
  return { version, target, parts };
}
