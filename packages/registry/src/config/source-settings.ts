import { resolve } from 'node:path';
import { type ClaimLimits, parseClaims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ClaimSet } from '../engine/claim-classes.ts';
import type { SourceKind, SourceSettings } from '../store/rows.ts';
import { claimsProblems } from './check-claims.ts';
import { checkShape } from '../shape/check-shape.ts';
import { SOURCE_KINDS, sourceDraft, sourceProblems } from './check-sources.ts';
import { pathText } from '../shape/problem.ts';
import { sourceBody, type SourceBody } from './source-shape.ts';
import { durationOf } from '../shape/texts.ts';

/** Kinds that have nothing to read again: their entries come from somewhere else. */
const NOT_SYNCED: ReadonlySet<SourceKind> = new Set(['managed', 'kubernetes']);

/**
 * What the store keeps of a source that has passed its checks. Members that mean nothing for the kind are dropped
 * (specification §1.3.2: interval and filter of managed and kubernetes sources are ignored). `directory` is where relative
 * paths of a configuration file start.
 */
export function sourceSettings(
  body: SourceBody,
  directory: string,
  claimLimits: ClaimLimits,
): SourceSettings {
  const kind = SOURCE_KINDS.find((candidate) => body[candidate] !== undefined);
  if (kind === undefined) throw new SkepError('internal/bug', { message: 'a source without a kind' });
  const isSynced = !NOT_SYNCED.has(kind);
  return {
    kind,
    config: JSON.stringify(blockOf(body, kind, directory)),
    format: (body.format ?? '') === '' ? null : (body.format ?? null),
    filter: !isSynced || body.filter === undefined ? null : JSON.stringify(body.filter),
    interval: isSynced && body.file?.data === undefined ? intervalOf(body) : null,
    claims: claimSet(body.claims, claimLimits),
  };
}

/**
 * Reads the body of a request that makes or replaces a source (specification §2.6.1). Fails with `config/invalid`; the
 * message names every problem, separated by semicolons.
 */
export function parseSourceBody(value: unknown, claimLimits: ClaimLimits): SourceSettings {
  const shape = checkShape(sourceBody, value);
  const source = sourceDraft.parse(value);
  const problems = [
    ...('problems' in shape ? shape.problems : []),
    ...claimsProblems(source.claims, ['claims'], claimLimits),
    ...sourceProblems(source, [], 'api'),
  ];
  if ('data' in shape && problems.length === 0) return sourceSettings(shape.data, '/', claimLimits);
  const texts = problems.map(({ path, message }) =>
    [pathText(path), message].filter((part) => part !== '').join(': '),
  );
  throw new SkepError('config/invalid', { message: texts.join('; '), hint: '' });
}

/** The canonical text of claims as written; absent claims are none. They must have been checked. */
export function claimSet(value: unknown, limits: ClaimLimits): ClaimSet {
  return value === undefined ? '' : canonicalClaims(parseClaims(value, limits));
}

function blockOf(body: SourceBody, kind: SourceKind, directory: string): unknown {
  const { file } = body;
  if (kind !== 'file' || file?.path === undefined) return body[kind];
  return { ...file, path: resolve(directory, file.path) };
}

function intervalOf({ syncPolicy }: SourceBody): number {
  const interval = durationOf(syncPolicy?.interval ?? '');
  if (interval === undefined) throw new SkepError('internal/bug', { message: 'a source without interval' });
  return interval;
}
