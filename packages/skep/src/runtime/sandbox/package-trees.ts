import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import { removeWhole } from './own-directories.ts';
import { packagesDirectory } from './places.ts';

/** The tree of a package whose exact version is named and there: a published version never changes, so nobody is asked. */
export async function fetchedTree(
  environment: RuntimeEnvironment,
  { name, version = '' }: PackageSource,
): Promise<string | undefined> {
  const reference = treeId(name, version);
  return EXACT.test(version) && (await hasTree(environment, reference)) ? reference : undefined;
}

/** Readable and unique: the same package and version have the same tree. */
export function treeId(name: string, version: string): string {
  const plain = name
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 80);
  const hash = createHash('sha256').update(`${name}\0${version}`).digest('hex').slice(0, 12);
  return `npm-${plain}@${version.replaceAll(/[^A-Za-z0-9.+-]/g, '_')}-${hash}`;
}

/** Directory of a fetched package. Throws `runtime/package-not-found` when it is not (or no longer) there. */
export async function packageTree(environment: RuntimeEnvironment, reference: string): Promise<string> {
  if (await hasTree(environment, reference)) return path.join(packagesDirectory(environment), reference);
  throw new SkepError('runtime/package-not-found', {
    message: `package tree "${reference}" is not in the cache`,
    hint: 'start the workload with skep start, which fetches the package anew',
  });
}

/** True while the tree of that id is in the cache. */
export async function hasTree(environment: RuntimeEnvironment, reference: string): Promise<boolean> {
  if (!isTreeId(reference)) return false;
  const found = await ifThere(stat(path.join(packagesDirectory(environment), reference)));
  return found?.isDirectory() === true;
}

/** Removes a tree; another name is not ours and stays. */
export async function removeTree(environment: RuntimeEnvironment, reference: string): Promise<void> {
  if (isTreeId(reference)) await removeWhole(packagesDirectory(environment), reference, environment);
}

const EXACT = /^\d+\.\d+\.\d+(?:[-+].*)?$/;
const isTreeId = (reference: string) => /^npm-[A-Za-z0-9-]*@[A-Za-z0-9._+-]+-[0-9a-f]{12}$/.test(reference);
