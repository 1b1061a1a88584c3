import { hash } from 'node:crypto';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ConditionalSource } from '../source.ts';
import type { GitAuth } from './credentials.ts';
import { type GitRefKeys, refOf } from './ref.ts';
import { readRemoteFile, resolveRef } from './remote.ts';
import { parseRepository } from './repository-url.ts';
import { type GitSession, type GitSurroundings, withGit } from './session.ts';
import type { SourceContent } from '../source.ts';

/** Where the catalogue lies in a repository when a source does not say. */
export const CATALOGUE_PATH = 'registry.json';

/** A `git` source as configured. Without branch, tag and commit: the remote's default branch. */
export interface GitSourceOptions extends GitRefKeys {
  readonly name: string;
  readonly repository: string;
  /** Default: `CATALOGUE_PATH`. */
  readonly path?: string;
  readonly auth?: GitAuth | undefined;
}

/**
 * One file of a git repository, fetched with the system's git: the trees of one commit and the one blob
 * (docs/behaviour/registry.md#fetching). Unchanged is told by the commit a branch or tag points at. Making the source
 * fails with `source/invalid-repository`, `-ref` or `-path`; fetching with `source/*`, `fetch/refused-address` and
 * `file/*`.
 */
export function gitSource(options: GitSourceOptions, surroundings: GitSurroundings): ConditionalSource {
  const repository = parseRepository(options.repository);
  const ref = refOf(options);
  const path = checkedPath(options.path ?? CATALOGUE_PATH);
  const remote = { repository, auth: options.auth };
  let last: { readonly commit: string; readonly hash: string } | undefined;

  async function take(git: GitSession, commit: string): Promise<SourceContent> {
    const bytes = await readRemoteFile(git, { ref, id: commit, path });
    const content = { bytes, hash: hash('sha256', bytes) };
    last = { commit, hash: content.hash };
    return content;
  }

  return {
    name: options.name,
    label: `${path} of ${repository.url}`,
    fetch: (signal) =>
      withGit(remote, surroundings, signal, async (git) => take(git, await resolveRef(git, ref))),
    fetchIfChanged: (known, signal) =>
      withGit(remote, surroundings, signal, async (git) => {
        const commit = await resolveRef(git, ref);
        return last?.commit === commit && last.hash === known ? undefined : await take(git, commit);
      }),
  };
}

/** `a/b.json`, also written `/a/b.json` or `./a/b.json`. Fails with `source/invalid-path`. */
export function checkedPath(path: string): string {
  const plain = path.replace(/^(?:\.?\/)+/u, '');
  const segments = plain.split('/');
  if (plain.includes('\0') || segments.some((segment) => ['', '.', '..'].includes(segment))) {
    throw new SkepError('source/invalid-path', {
      message: `"${path}" is not a path of a file in a repository`,
    });
  }
  return plain;
}
