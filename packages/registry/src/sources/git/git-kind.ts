import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { faultOf, unless } from '../../shape/fault.ts';
import { nonEmpty } from '../../shape/texts.ts';
import { assertAllowed } from '../allowed-path.ts';
import { sourceKind } from '../kind.ts';
import type { ConditionalSource } from '../source.ts';
import type { GitAuth } from './credentials.ts';
import { CATALOGUE_PATH, checkedPath, gitSource } from './git-source.ts';
import { refOf } from './ref.ts';
import { parseRepository } from './repository-url.ts';

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
  )
  .transform(({ username, passwordFile, sshKeyFile }): GitAuth | undefined => {
    if (sshKeyFile !== undefined) return { sshKeyFile };
    return username === undefined || passwordFile === undefined ? undefined : { username, passwordFile };
  });

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
      parseRepository(settings.repository).transport === 'ssh' &&
      !(settings.auth !== undefined && 'sshKeyFile' in settings.auth);
    return {
      files: file === undefined ? [] : [file],
      ...(usesOwnKeys ? { apiFault: KEY_NEEDED } : {}),
    };
  },
  open: (settings, { name, env, tempDir, clock, allowPrivate, folders, limits }) => {
    const opened = gitSource(
      { name, ...settings },
      { env, tempDir, clock, allowPrivate, maxBytes: limits.maxCatalogueSize },
    );
    const file = fileOf(settings.auth);
    return file === undefined || folders === undefined ? opened : guarded(opened, file, folders);
  },
});

function fileOf(given: GitAuth | undefined): string | undefined {
  if (given === undefined) return undefined;
  return 'sshKeyFile' in given ? given.sshKeyFile : given.passwordFile;
}

/** The source, with a check of where its password or key lies before every fetch. */
function guarded(source: ConditionalSource, file: string, folders: readonly string[]): ConditionalSource {
  return {
    ...source,
    fetch: async (signal) => {
      await assertAllowed(file, folders);
      return source.fetch(signal);
    },
    fetchIfChanged: async (known, signal) => {
      await assertAllowed(file, folders);
      return source.fetchIfChanged(known, signal);
    },
  };
}
