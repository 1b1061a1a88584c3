import { SkepError } from '@skep/core/errors/skep-error.ts';
import { gitFailure, lacksObject, withholdsObject } from './failure.ts';
import { describeRef, type GitRef } from './ref.ts';
import type { GitResult } from './command.ts';
import type { GitSession } from './session.ts';

/**
 * The object a ref points at now: one request, or none for a commit, which never changes. Fails with
 * `source/ref-not-found` and the codes of gitFailure.
 */
export async function resolveRef(git: GitSession, ref: GitRef): Promise<string> {
  if (ref.kind === 'commit') return ref.id;
  const name = remoteName(ref);
  const { stdout } = await succeed(git, ['ls-remote', '--quiet', '--', git.url, name]);
  // The pattern also fits refs that end with it.
  const line = stdout
    .toString('utf8')
    .split('\n')
    .find((candidate) => candidate.split('\t')[1] === name);
  const id = line?.split('\t')[0] ?? '';
  if (/^[0-9a-f]{40,64}$/u.test(id)) return id;
  throw refNotFound(git, ref);
}

/** A file in one state of the repository; `id` is what `ref` points at. */
export interface RemoteFile {
  readonly ref: GitRef;
  readonly id: string;
  readonly path: string;
}

/**
 * Bytes of a file. What travels is the commit, its folders and this one file, in two requests; a server that gives out no
 * object by its id is asked for all files, and for a bare commit all branches. Fails with `source/ref-not-found`, and with
 * `source/path-not-found` also for folders and links.
 */
export async function readRemoteFile(git: GitSession, file: RemoteFile): Promise<Buffer> {
  const partial = await openRepository(git, 'partial.git', file.id);
  const fetched = await git.run([...partial, ...FETCH, '--depth=1', '--filter=blob:none', 'origin', file.id]);
  if (fetched.status !== 0) return await readElsewise(git, file, fetched.stderr);
  const blob = await findBlob(git, partial, file);
  const read = await git.run([...partial, 'cat-file', 'blob', blob]);
  return read.status === 0 ? read.stdout : await readElsewise(git, file, read.stderr);
}

async function readElsewise(git: GitSession, file: RemoteFile, stderr: string): Promise<Buffer> {
  if (lacksObject(stderr)) throw refNotFound(git, file.ref);
  if (!withholdsObject(stderr)) throw gitFailure(git.url, stderr);
  const whole = await openRepository(git, 'whole.git', file.id);
  const wanted =
    file.ref.kind === 'commit'
      ? ['origin', '+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*']
      : ['--depth=1', 'origin', file.id];
  await succeed(git, [...whole, ...FETCH, ...wanted]);
  const known = await git.run([...whole, 'cat-file', '-e', file.id]);
  if (known.status !== 0) throw refNotFound(git, file.ref);
  const { stdout } = await succeed(git, [...whole, 'cat-file', 'blob', await findBlob(git, whole, file)]);
  return stdout;
}

/** Makes an empty repository; returns the arguments that lead git to it. */
async function openRepository(git: GitSession, name: string, id: string): Promise<readonly string[]> {
  const format = id.length === 64 ? 'sha256' : 'sha1';
  await succeed(git, ['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, name]);
  return [`--git-dir=${name}`];
}

async function findBlob(git: GitSession, repository: readonly string[], file: RemoteFile): Promise<string> {
  const listing = ['ls-tree', '-z', '--full-tree', file.id, '--', file.path];
  const { stdout } = await succeed(git, [...repository, ...listing]);
  // <mode> SP <type> SP <object> TAB <file> NUL
  const [, mode = '', blob = ''] = /^(\d+) \w+ ([0-9a-f]+)\t/u.exec(stdout.toString('utf8')) ?? [];
  const kind = KINDS[mode];
  if (kind === 'file') return blob;
  const what = kind === undefined ? 'holds no file' : `has a ${kind} where a file is expected:`;
  throw new SkepError('source/path-not-found', { message: `"${git.url}" ${what} "${file.path}"` });
}

const FETCH = ['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head'] as const;

/** Modes of tree entries (git-fast-import(1)). */
const KINDS: Readonly<Record<string, 'file' | 'folder' | 'symbolic link' | 'submodule'>> = {
  '100644': 'file',
  '100755': 'file',
  '040000': 'folder',
  '120000': 'symbolic link',
  '160000': 'submodule',
};

function remoteName(ref: Exclude<GitRef, { kind: 'commit' }>): string {
  if (ref.kind === 'default') return 'HEAD';
  return ref.kind === 'branch' ? `refs/heads/${ref.name}` : `refs/tags/${ref.name}`;
}

async function succeed(git: GitSession, args: readonly string[]): Promise<GitResult> {
  const result = await git.run(args);
  if (result.status === 0) return result;
  throw gitFailure(git.url, result.stderr);
}

function refNotFound(git: GitSession, ref: GitRef): SkepError {
  const hint = ref.kind === 'default' ? { hint: 'push a first commit, or name a branch' } : {};
  return new SkepError('source/ref-not-found', {
    message: `"${git.url}" does not have ${describeRef(ref)}`,
    ...hint,
  });
}
