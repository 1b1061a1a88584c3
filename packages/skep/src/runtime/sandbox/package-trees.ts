import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { anything, members, readAs, textThat } from '@skep/core/settings/shape.ts';
import { chooseBin } from '../../protocol/choose-bin.ts';
import { isNpmName } from '../../protocol/npm-name.ts';
import { normalName } from '../../protocol/pypi-name.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { Python } from '../pypi/python.ts';
import { removeWhole } from './own-directories.ts';
import { packagesDirectory, treeOf } from './places.ts';
import { readTreeProgram, type TreeProgram } from './tree-program.ts';

/** The tree of a package whose exact version is named and there: a published version never changes, so nobody is asked. */
export async function fetchedTree(
  environment: RuntimeEnvironment,
  { ecosystem, name, version = '' }: PackageSource,
): Promise<string | undefined> {
  if (!EXACT[ecosystem].test(version)) return undefined;
  const reference =
    ecosystem === 'pypi'
      ? pypiTreeId(name, version, await systemPython(environment))
      : treeId(ecosystem, name, version);
  return (await hasTree(environment, reference)) ? reference : undefined;
}

async function systemPython(environment: RuntimeEnvironment): Promise<Python> {
  const { findPython } = await import('../pypi/python.ts');
  return findPython(environment);
}

/** A virtual environment is for one release of Python. */
export function pypiTreeId(name: string, version: string, { release }: Pick<Python, 'release'>): string {
  return treeId('pypi', normalName(name), version, release);
}

/** Readable and unique: the same package and version have the same tree, made for the same of what runs it. */
export function treeId(
  ecosystem: PackageSource['ecosystem'],
  name: string,
  version: string,
  madeFor = '',
): string {
  const plain = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 80);
  const hash = createHash('sha256')
    .update([name, version, ...(madeFor === '' ? [] : [madeFor])].join('\0'))
    .digest('hex')
    .slice(0, 12);
  return `${ecosystem}-${plain}@${version.replaceAll(/[^A-Za-z0-9.+-]/g, '_')}-${hash}`;
}

/** The version in the id of a tree: versions of npm are of letters that stay as they are. */
export function treeVersion(reference: string): string | undefined {
  return /@([^@]+)-[0-9a-f]{12}$/.exec(reference)?.[1];
}

/** Directory of a fetched package. Throws `runtime/package-not-found` when it is not (or no longer) there. */
export async function packageTree(environment: RuntimeEnvironment, reference: string): Promise<string> {
  if (await hasTree(environment, reference)) return treeOf(environment, reference);
  throw new SkepError('runtime/package-not-found', {
    message: `package tree "${reference}" is not in the cache`,
    hint: 'start the workload with skep start, which fetches the package anew',
  });
}

/** True while the tree of that id is in the cache. */
export async function hasTree(environment: RuntimeEnvironment, reference: string): Promise<boolean> {
  if (!isTreeId(reference)) return false;
  const found = await ifThere(stat(treeOf(environment, reference)));
  return found?.isDirectory() === true;
}

/** Removes a tree; another name is not ours and stays. */
export async function removeTree(environment: RuntimeEnvironment, reference: string): Promise<void> {
  if (isTreeId(reference)) await removeWhole(packagesDirectory(environment), reference, environment);
}

const EXACT: Readonly<Record<PackageSource['ecosystem'], RegExp>> = {
  npm: /^\d+\.\d+\.\d+(?:[-+].*)?$/,
  pypi: /^\d/,
  go: /^v\d+\.\d+\.\d+(?:[-+].*)?$/,
};
/** Whether a name is one that `treeId` gives. */
export const isTreeId = (reference: string): boolean =>
  /^(?:npm|pypi|go)-[A-Za-z0-9-]*@[A-Za-z0-9._+-]+-[0-9a-f]{12}$/.test(reference);

/** Where a package tree appears inside the sandbox. */
export const APP = '/app';
/** Where the running Node appears inside the sandbox. */
export const NODE = '/skep/bin/node';

/** A name can be no path out of the tree. */
const treeShape = members({ skep: members({ package: textThat(isNpmName, 'is no package') }) });
const manifestShape = members({ bin: anything });

/** The content of a tree's own package.json: it remembers which of the installed packages is the one to run. */
export function treeManifest(packageName: string): string {
  return `${JSON.stringify({ name: 'skep-server', version: '1.0.0', private: true, skep: { package: packageName } })}\n`;
}

/**
 * The program of a tree. Throws as `packageCommand`, and `runtime/start-failed` when what it was made for is gone from the
 * machine.
 */
export async function treeProgram(tree: string): Promise<TreeProgram> {
  const program = await readTreeProgram(tree);
  if (program === undefined) return { command: await packageCommand(tree), env: {}, needs: [] };
  const gone = program.needs.find((file) => !existsSync(file));
  if (gone === undefined) return program;
  throw new SkepError('runtime/start-failed', {
    message: `the package was fetched for "${gone}", which is not on this machine any more`,
    hint: FETCH_ANEW,
  });
}

/**
 * The command that runs the server of a package tree of npm, as the sandbox sees it. Scripts for Node run with the Node that is
 * bound in, anything else by itself. Throws `runtime/package-not-found` for a tree that is gone, `runtime/start-failed`
 * when the package has no clear program.
 */
export async function packageCommand(tree: string): Promise<string[]> {
  const name = await packageOf(tree);
  const home = path.join('node_modules', name);
  const manifest = readAs(manifestShape, await readJson(path.join(tree, home, 'package.json')));
  const choice = chooseBin(name, manifest?.bin);
  if (!('path' in choice)) throw unclear(name, choice.candidates);
  const file = path.posix.join(home, choice.path);
  // A package must not point out of its own tree.
  if (!file.startsWith(`${home}/`)) throw unclear(name, [choice.path]);
  const inside = path.posix.join(APP, file);
  return (await needsNode(path.join(tree, file))) ? [NODE, inside] : [inside];
}

/**
 * Where in a tree the package lies whose program is the one to run, for a server that may write beside its code; undefined
 * where servers never do. Throws `runtime/package-not-found`.
 */
export async function packageHome(tree: string): Promise<string | undefined> {
  if ((await readTreeProgram(tree)) !== undefined) return undefined;
  return path.join('node_modules', await packageOf(tree));
}

async function packageOf(tree: string): Promise<string> {
  const file = path.join(tree, 'package.json');
  const found = readAs(treeShape, await readJson(file));
  if (found !== undefined) return found.skep.package;
  throw new SkepError('runtime/package-not-found', {
    message: `"${file}" names no package`,
    hint: FETCH_ANEW,
  });
}

const FETCH_ANEW = 'remove the workload and run it again, which fetches the package anew';

function unclear(name: string, candidates: readonly string[]): SkepError {
  const found = candidates.length === 0 ? 'it has no program' : `its programs are ${candidates.join(', ')}`;
  return new SkepError('runtime/start-failed', {
    message: `cannot tell what to run in package "${name}": ${found}`,
    hint: 'choose a package that brings one program, or one named like the package',
  });
}

async function readJson(file: string): Promise<unknown> {
  const text = await ifThere(readFile(file, 'utf8'));
  if (text !== undefined) return JSON.parse(text) as unknown;
  throw new SkepError('runtime/package-not-found', {
    message: `the fetched package has no "${path.basename(path.dirname(file))}/${path.basename(file)}"`,
    hint: FETCH_ANEW,
  });
}

/** JavaScript by name, or by its `#!` line as npm's own shims decide. */
async function needsNode(file: string): Promise<boolean> {
  if (/\.[cm]?js$/.test(file)) return true;
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(128), 0, 128, 0);
  return /^#!.*\bnode\b/.test(buffer.toString('latin1', 0, bytesRead).split('\n')[0] ?? '');
}
