import { resolve } from 'node:path';
import type { ClaimLimits } from '@skep/auth/claims/claims.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import { checkShape } from '../shape/check-shape.ts';
import { claims, claimSet, claimsProblems } from '../shape/claims.ts';
import { draftOf, type Draft } from '../shape/draft.ts';
import { problemsText, type ConfigPath, type Problem } from '../shape/problem.ts';
import { duration, exactlyOne } from '../shape/texts.ts';
import { isSynced, SOURCE_KINDS, type SourceKind, type SourceSettings } from '../store/rows.ts';
import { filterShape, filterSize } from './filter/filter-shape.ts';
import type { SourceOrigin } from './kind.ts';
import { KINDS } from './kinds.ts';

/** `git, api, file, managed, or kubernetes` */
export const KIND_LIST = new Intl.ListFormat('en', { type: 'disjunction' }).format(SOURCE_KINDS);

type Block = z.ZodOptional<z.ZodObject>;

/** A block for each kind; exactly one of them is present in a source. */
function kindBlocks(): Readonly<Record<SourceKind, Block>>;
function kindBlocks(): Readonly<Record<string, Block>> {
  const blocks = SOURCE_KINDS.map((kind) => {
    const { shape, brief, exactlyOne: forms } = KINDS[kind];
    const block = shape.optional().describe(brief);
    return [kind, forms === undefined ? block : block.meta(exactlyOne(forms))] as const;
  });
  return Object.fromEntries(blocks);
}

/** The members that a source of any kind may have. */
const commonMembers = {
  syncPolicy: z
    .strictObject({ interval: duration().describe('between two polls, as `30m`') })
    .optional()
    .describe(`required for ${SOURCE_KINDS.filter(isSynced).join(', ')}`),
  filter: filterShape
    .superRefine(filterSize)
    .optional()
    .describe('which entries are taken; what is excluded stays out whatever is included'),
  claims: claims.optional(),
};

/** Everything of a source but its name, in the configuration file and in a request of the admin API. */
export const sourceMembers = {
  format: z
    .enum(['toolhive', 'upstream', ''])
    .optional()
    .describe('which shapes of catalogue are accepted; found out when absent'),
  ...kindBlocks(),
  ...commonMembers,
};

const sourceBody = z.strictObject(sourceMembers);

/** What a request may say of a source, for its documentation. */
export const requestShape = z.strictObject(sourceMembers).meta(exactlyOne(SOURCE_KINDS));

export type SourceDraft = Draft<z.input<typeof sourceBody>>;

/** Rules between the members of one source, checked as far as the members can be read. */
export function* sourceProblems(
  source: SourceDraft,
  path: ConfigPath,
  origin: SourceOrigin,
): Generator<Problem> {
  const [kind, ...others] = kindsIn(source);
  if (kind === undefined || others.length > 0) {
    const message =
      kind === undefined
        ? `one of ${KIND_LIST} configuration must be specified`
        : `only one of ${KIND_LIST} configuration may be specified, found ${[kind, ...others].join(' and ')}`;
    yield { path, message };
    return;
  }
  const block = source[kind];
  const { problems, isReadOnce, formats } = KINDS[kind];
  const { format = '' } = source;
  if (block !== undefined) {
    yield* problems(block, [...path, kind], origin);
    if (formats !== undefined && !['', ...formats].includes(format)) {
      const choices = formats.join('" or "');
      const message = `must be either empty or "${choices}" with an ${kind} source, not "${format}"`;
      yield { path: [...path, 'format'], message };
    }
  }
  if (isSynced(kind) && !('syncPolicy' in source) && !isReadOnce(block)) {
    // In these words for each of the two places.
    const whose = origin === 'api' ? ` for ${kind} registries` : '';
    yield { path, message: `syncPolicy.interval is required${whose}` };
  }
}

/** At most one managed source: it is where everything is published. */
export function managedProblems(sources: readonly SourceDraft[]): Problem[] {
  const managed = sources.flatMap((source, index) => ('managed' in source ? [index] : []));
  return managed.slice(1).map((index) => ({
    path: ['sources', index, 'managed'],
    message: `at most one managed source is allowed, found ${managed.length}`,
  }));
}

/**
 * What the store keeps of a source that has passed its checks. Members that mean nothing for the kind are dropped: managed
 * sources and those that are watched have no interval and no filter. `directory` is where relative paths of a
 * configuration file start.
 */
export function sourceSettings(
  source: SourceDraft,
  directory: string,
  claimLimits: ClaimLimits,
): SourceSettings {
  const [kind] = kindsIn(source);
  if (kind === undefined) throw new SkepError('internal/bug', { message: 'a source without a kind' });
  const { written, isReadOnce, relativePaths = [] } = KINDS[kind];
  const config = Object.entries(written(source[kind])).map(([key, value]: [string, unknown]) =>
    relativePaths.includes(key) && typeof value === 'string'
      ? [key, resolve(directory, value)]
      : [key, value],
  );
  const { format = '', filter, syncPolicy } = source;
  return {
    kind,
    config: JSON.stringify(Object.fromEntries(config)),
    format: format === '' ? null : format,
    filter: isSynced(kind) && filter !== undefined ? JSON.stringify(filter) : null,
    interval:
      isSynced(kind) && !isReadOnce(source[kind])
        ? commonMembers.syncPolicy.unwrap().parse(syncPolicy).interval
        : null,
    claims: claimSet(source.claims, claimLimits),
  };
}

/**
 * Reads the body of a request that makes or replaces a source. Fails with `config/invalid`; the message names every
 * problem, separated by semicolons.
 */
export function parseSourceBody(value: unknown, claimLimits: ClaimLimits): SourceSettings {
  const shape = checkShape(sourceBody, value);
  const source = draftOf(sourceBody, value) ?? {};
  const problems = [
    ...('problems' in shape ? shape.problems : []),
    ...claimsProblems(source.claims, ['claims'], claimLimits),
    ...sourceProblems(source, [], 'api'),
  ];
  if (problems.length === 0) return sourceSettings(source, '/', claimLimits);
  throw new SkepError('config/invalid', { message: problemsText(problems), hint: '' });
}

function kindsIn(source: SourceDraft): SourceKind[] {
  return SOURCE_KINDS.filter((kind) => kind in source);
}
