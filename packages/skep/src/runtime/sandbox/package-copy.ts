import { execFile, type ExecFileException } from 'node:child_process';
import { lstat, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { removeFile } from '@skep/core/files/atomic-write.ts';
import { errnoOf, ifThere } from '@skep/core/files/errno.ts';
import { whyNotWritten } from '@skep/core/files/write-failure.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { bootId } from './linux-process.ts';
import { isFull, removeFiles } from './own-directories.ts';
import { packageHome } from './package-trees.ts';
import { treeOf, type WorkloadPlaces } from './places.ts';

const run = promisify(execFile);

/** Names on one command line, whose length is limited. */
const AT_ONCE = 500;
/** What is more than this is copied when it is wanted. */
const AHEAD = { files: 1_000, bytes: 32 * 1024 * 1024 } as const;

/**
 * Copies the folder of a package into an empty directory; what the package depends on is left out. By cp(1), on another
 * processor than the start that goes on beside it. Throws `file/write-failed`.
 */
export async function copyPackage(source: string, target: string): Promise<void> {
  const names = await ownNames(source);
  for (let from = 0; from < names.length; from += AT_ONCE) {
    const some = names.slice(from, from + AT_ONCE);
    await run('cp', ['-RP', '--', ...some, target], { cwd: source }).catch((error) =>
      failCopy(target, error),
    );
  }
}

const ownNames = async (source: string): Promise<readonly string[]> =>
  (await readdir(source)).filter((name) => name !== 'node_modules');

async function failCopy(target: string, cause: ExecFileException): Promise<never> {
  const { reason, ...next } = whyNotWritten(target, (await isFull(target)) ? 'ENOSPC' : errnoOf(cause));
  const said = printable((cause.stderr ?? '').trim().split('\n').at(-1) ?? '');
  throw new SkepError('file/write-failed', {
    message: `cannot copy the package into "${target}": ${next.hint === undefined ? said || reason : reason}`,
    ...next,
    cause,
  });
}

/** Where a server's own copy of its package's folder lies. */
export const copyOf = ({ state }: Pick<WorkloadPlaces, 'state'>): string => path.join(state, 'package');

/**
 * Copies the folder of a package into what was made ahead of the next workload (decision 0449), which begins with it where it
 * runs that package. Nothing is copied where servers get none, or much. What cannot be copied is copied at the start.
 */
export async function copyAhead(
  environment: RuntimeEnvironment,
  reference: string,
  places: Pick<WorkloadPlaces, 'state' | 'copied'>,
): Promise<void> {
  try {
    const tree = treeOf(environment, reference);
    const home = await packageHome(tree);
    if (home === undefined || !(await isSmall(path.join(tree, home)))) return;
    await mkdir(copyOf(places), { recursive: true, mode: 0o755 });
    await copyPackage(path.join(tree, home), copyOf(places));
    // Last of all: a copy that nobody has called whole is none.
    await writeFile(places.copied, await noteOf(tree), { mode: 0o600 });
  } catch {
    await removeFiles(places.state);
  }
}

/** A machine that went down may have lost what was not on its disk yet, and a package may have been fetched anew. */
async function noteOf(tree: string): Promise<string> {
  const { ino, ctimeMs } = await stat(tree);
  return `${await bootId()} ${path.basename(tree)} ${ino} ${ctimeMs}`;
}

/** Removes the copy where the workload runs something else. */
export async function dropOtherCopy(
  places: Pick<WorkloadPlaces, 'state' | 'copied'>,
  tree: string,
): Promise<void> {
  if (await isCopiedAhead(places, tree)) return;
  await removeFiles(places.state);
  await removeFile(places.copied);
}

/** Whether a whole copy of the package in that directory was made ahead. */
export async function isCopiedAhead(
  { copied }: Pick<WorkloadPlaces, 'copied'>,
  tree: string,
): Promise<boolean> {
  const note = await ifThere(readFile(copied, 'utf8'));
  return note !== undefined && note === (await ifThere(noteOf(tree)));
}

async function isSmall(folder: string): Promise<boolean> {
  let [files, bytes] = [0, 0];
  const waiting = (await ownNames(folder)).map((name) => path.join(folder, name));
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    const found = await lstat(one);
    if (found.isDirectory()) waiting.push(...(await readdir(one)).map((name) => path.join(one, name)));
    [files, bytes] = [files + 1, bytes + found.size];
    if (files + waiting.length > AHEAD.files || bytes > AHEAD.bytes) return false;
  }
  return true;
}
