import { isAbsolute } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import { faultOf, unless } from '../../shape/problem.ts';
import { nonEmpty } from '../../shape/texts.ts';
import { assertAllowed } from '../allowed-path.ts';
import { sourceKind } from '../kind.ts';
import { sourceContent, type Source } from '../source.ts';
import type { GitAuth } from './credentials.ts';
import { refOf, type GitRefKeys } from './ref.ts';
import { readRemoteFile, resolveRef } from './remote.ts';
import { parseRepository } from './repository-url.ts';
import { withGit, type GitSurroundings } from './session.ts';

/** Where the catalogue lies in a repository when a source does not say. */
export const CATALOGUE_PATH = 'registry.json';

const auth = z
  .strictObject({
    username: nonEmpty.optional().describe('of HTTP basic authentication, with passwordFile'),
    passwordFile: nonEmpty.optional().describe('absolute; read again at every poll'),
    sshKeyFile: nonEmpty
      .regex(/^[\w./@+=:-]+$/, 'may have letters, digits and ./_@+=:- only')
      .optional()
      .describe(
        'absolute; ssh then uses no other key, no agent and no settings of the account. Required for ssh through the API',
      ),
  })
  .superRefine(
    unless(({ username, passwordFile, sshKeyFile }) => {
      const given = [username, passwordFile].filter((part) => part !== undefined).length;
      if (given > 0 && sshKeyFile !== undefined) {
        return 'takes either username and passwordFile, or sshKeyFile';
      }
      return given === 1 ? 'takes username and passwordFile together' : undefined;
    }),
  );

const shape = z
  .strictObject({
    repository: nonEmpty.superRefine(unless((value) => faultOf(() => parseRepository(value)))),
    branch: nonEmpty
      .optional()
      .describe('at most one of branch, tag and commit; the default branch of the server when absent'),
    tag: nonEmpty.optional().describe('instead of a branch'),
    commit: nonEmpty
      .optional()
      .describe('instead of a branch: all 40 digits (64 of a SHA-256 repository), in quotes'),
    path: nonEmpty
      .superRefine(unless((value) => faultOf(() => checkedPath(value))))
      .default(CATALOGUE_PATH)
      .describe('the catalogue, from the top of the repository'),
    auth: auth.optional().describe('how to sign in'),
  })
  .superRefine(unless((keys) => faultOf(() => refOf(keys))));

const KEY_NEEDED =
  'an ssh repository of a source made through the API needs auth.sshKeyFile, in one of the folders of limits.allowedPaths; ' +
  'only sources of the configuration file use the keys of the server’s account';

export const gitKind = sourceKind({
  shape,
  brief: 'a file in a git repository',
  problems: (block, path) =>
    (['passwordFile', 'sshKeyFile'] as const).flatMap((key) => {
      const file = block.auth?.[key];
      if (file === undefined || isAbsolute(file)) return [];
      return [{ path: [...path, 'auth', key], message: 'must be an absolute path' }];
    }),
  facts: (settings) => {
    const file = fileOf(settings.auth);
    // The keys of the account are the operator's, and may open what whoever names a source must not see.
    const usesOwnKeys =
      parseRepository(settings.repository).transport === 'ssh' && settings.auth?.sshKeyFile === undefined;
    return {
      files: file === undefined ? [] : [file],
      ...(usesOwnKeys ? { apiFault: KEY_NEEDED } : {}),
    };
  },
  open: (settings, { env, tempDir, clock, allowPrivate, folders, limits }) => {
    const maxBytes = limits.maxCatalogueSize;
    const opened = gitSource(settings, { env, tempDir, clock, allowPrivate, maxBytes });
    const file = fileOf(settings.auth);
    return {
      label: opened.label,
      fetch: async (signal, known) => {
        // Before every fetch: where a link leads may have changed.
        if (file !== undefined && folders !== undefined) await assertAllowed(file, folders);
        return opened.fetch(signal, known);
      },
    };
  },
});

function fileOf(given: GitAuth | undefined): string | undefined {
  return given?.sshKeyFile ?? given?.passwordFile;
}

/** A `git` source as configured. Without branch, tag and commit: the remote's default branch. */
export interface GitSourceOptions extends GitRefKeys {
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
export function gitSource(options: GitSourceOptions, surroundings: GitSurroundings): Source {
  const repository = parseRepository(options.repository);
  const ref = refOf(options);
  const path = checkedPath(options.path ?? CATALOGUE_PATH);
  const remote = { repository, auth: options.auth };
  let last: { readonly commit: string; readonly hash: string } | undefined;
  return {
    label: `${path} of ${repository.url}`,
    fetch: (signal, known) =>
      withGit(remote, surroundings, signal, async (git) => {
        const commit = await resolveRef(git, ref);
        if (last?.commit === commit && last.hash === known) return undefined;
        const content = sourceContent(await readRemoteFile(git, { ref, id: commit, path }));
        last = { commit, hash: content.hash };
        return content;
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
