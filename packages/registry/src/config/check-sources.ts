import { isAbsolute } from 'node:path';
import { z } from 'zod';
import type { ConfigPath, Problem } from '../shape/problem.ts';

/** In the order in which messages name them. */
export const SOURCE_KINDS = ['git', 'api', 'file', 'managed', 'kubernetes'] as const;

const LIST = 'git, api, file, managed, or kubernetes';

// Reads what is readable and takes anything else as absent: the shape has reported that already.
const block = z.looseObject({}).optional().catch(undefined);
export const sourceDraft = z
  .looseObject({
    name: z.string().catch(''),
    format: z.unknown().optional(),
    git: block,
    api: block,
    file: block,
    managed: z.unknown().optional(),
    kubernetes: z.unknown().optional(),
    syncPolicy: z.unknown().optional(),
    claims: z.unknown().optional(),
  })
  .catch({ name: '' });

export type SourceDraft = z.infer<typeof sourceDraft>;

/** Where a source stands: some things may be said only in one of the two places. */
export type SourceOrigin = 'file' | 'api';

/** Rules between the members of one source (specification §1.3.9), checked as far as the members can be read. */
export function sourceProblems(source: SourceDraft, path: ConfigPath, origin: SourceOrigin): Problem[] {
  const kinds = SOURCE_KINDS.filter((kind) => kind in source);
  if (kinds.length === 0) return [{ path, message: `one of ${LIST} configuration must be specified` }];
  if (kinds.length > 1) {
    const found = kinds.join(' and ');
    return [{ path, message: `only one of ${LIST} configuration may be specified, found ${found}` }];
  }
  return [
    ...fileProblems(source, path, origin),
    ...gitProblems(source, path),
    ...apiProblems(source, path),
    ...intervalProblems(source, path, origin),
  ];
}

/** At most one managed source: it is where everything is published. */
export function managedProblems(sources: readonly SourceDraft[]): Problem[] {
  const managed = sources.flatMap((source, index) => ('managed' in source ? [index] : []));
  return managed.slice(1).map((index) => ({
    path: ['sources', index, 'managed'],
    message: `at most one managed source is allowed, found ${String(managed.length)}`,
  }));
}

function fileProblems({ file }: SourceDraft, parent: ConfigPath, origin: SourceOrigin): Problem[] {
  if (file === undefined) return [];
  const path = [...parent, 'file'];
  const given = ['path', 'url', 'data'].filter((key) => key in file);
  const choices = origin === 'file' ? 'file.path or file.url' : 'file.path, file.url or file.data';
  const problems: Problem[] = [];
  if (given.length === 0) problems.push({ path, message: `${choices} is required` });
  if (given.length > 1) {
    const found = given.map((key) => `file.${key}`).join(' and ');
    problems.push({ path, message: `${found} are mutually exclusive` });
  }
  if (origin === 'file' && 'data' in file) {
    const message =
      'file.data is for sources made through the API; write the data into a file and name its path';
    problems.push({ path: [...path, 'data'], message });
  }
  if (origin === 'api' && typeof file['path'] === 'string' && !isAbsolute(file['path'])) {
    problems.push({ path: [...path, 'path'], message: 'must be an absolute path' });
  }
  if ('timeout' in file && !('url' in file)) {
    problems.push({ path: [...path, 'timeout'], message: 'is only for file.url' });
  }
  return problems;
}

function gitProblems({ git }: SourceDraft, path: ConfigPath): Problem[] {
  const auth: unknown = git?.['auth'];
  if (typeof auth !== 'object' || auth === null) return [];
  return ['passwordFile', 'sshKeyFile'].flatMap((key) => {
    const file: unknown = Reflect.get(auth, key);
    if (typeof file !== 'string' || isAbsolute(file)) return [];
    return [{ path: [...path, 'git', 'auth', key], message: 'must be an absolute path' }];
  });
}

function apiProblems({ api, format }: SourceDraft, path: ConfigPath): Problem[] {
  if (api === undefined || typeof format !== 'string' || format === '' || format === 'upstream') return [];
  const message = `must be either empty or "upstream" with an api source, not "${format}"`;
  return [{ path: [...path, 'format'], message }];
}

function intervalProblems(source: SourceDraft, path: ConfigPath, origin: SourceOrigin): Problem[] {
  const kind = (['git', 'api', 'file'] as const).find((one) => one in source);
  if (kind === undefined || (kind === 'file' && inline(source)) || source.syncPolicy !== undefined) return [];
  // In these words for each of the two places (specification §1.3.9, §2.6.1).
  const whose = origin === 'api' ? ` for ${kind} registries` : '';
  return [{ path, message: `syncPolicy.interval is required${whose}` }];
}

function inline({ file }: SourceDraft): boolean {
  return file !== undefined && 'data' in file;
}
