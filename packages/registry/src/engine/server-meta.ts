import { OFFICIAL_META } from '@skep/core/catalog/official-meta.ts';
import { EPOCH, type Instant, parseInstant } from './instant.ts';

/** What the block is made from: what the source said about the version, and when our store first and last saw it. */
export interface MetaInput {
  /** The source's own official block as JSON text, where it had one. */
  readonly official: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ServerMeta {
  /** JSON text of the wrapper's `_meta`. */
  readonly text: string;
  readonly updatedAt: Instant;
}

/** What the API knows; another registry may say anything. */
const STATUSES: ReadonlySet<string | undefined> = new Set(['active', 'deprecated', 'deleted']);

/**
 * The wrapper's `_meta`: the official block as the source gave it, completed where it was silent or said what no client
 * understands. Only `isLatest` is always ours, because it is a statement about this catalogue
 * (docs/behaviour/registry.md#consumer-api).
 */
export function serverMeta(input: MetaInput, isLatest: boolean): ServerMeta {
  if (input.official !== null) return metaOf(input, isLatest);
  const key = `${input.createdAt} ${input.updatedAt} ${isLatest}`;
  if (last?.key !== key) last = { key, meta: metaOf(input, isLatest) };
  return last.meta;
}

/** Where their source says nothing, all versions of one synchronisation have the same block. */
let last: { readonly key: string; readonly meta: ServerMeta } | undefined;

function metaOf(input: MetaInput, isLatest: boolean): ServerMeta {
  const official = input.official === null ? {} : objectOf(JSON.parse(input.official));
  const status = textOf(official['status'])?.toLowerCase();
  const publishedAt = timeOf(official['publishedAt']) ?? input.createdAt;
  const updatedAt = timeOf(official['updatedAt']) ?? input.updatedAt;
  const completed = {
    ...official,
    status: STATUSES.has(status) ? status : 'active',
    publishedAt,
    updatedAt,
    statusChangedAt: timeOf(official['statusChangedAt']) ?? publishedAt,
    isLatest,
  };
  return {
    text: JSON.stringify({ [OFFICIAL_META]: completed }),
    updatedAt: parseInstant(updatedAt) ?? EPOCH,
  };
}

/** Whether an official block says that the version is deleted: its registry keeps it, and shows it to nobody. */
export function isDeleted(official: string | null): boolean {
  if (official === null || !/deleted/i.test(official)) return false;
  return textOf(objectOf(JSON.parse(official))['status'])?.toLowerCase() === 'deleted';
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** An RFC 3339 time, as it was written. */
function timeOf(value: unknown): string | undefined {
  const text = textOf(value);
  return text === undefined || parseInstant(text) === undefined ? undefined : text;
}
