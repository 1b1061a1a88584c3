import { bundleStatus, type BundleStatus } from '@skep/core/catalog/bundle.ts';
import { OFFICIAL_META, type Entry } from '@skep/core/catalog/entry.ts';
import { extensionStatus } from '@skep/core/catalog/extension-summary.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parseLossless, serializeLossless } from '@skep/core/json/lossless.ts';
import type { PerKind, StoredVersion } from '../store/rows.ts';
import { EPOCH, parseInstant, type Instant } from './instant.ts';

/** A version as callers get it. */
export interface VersionBody {
  /** JSON text of one item. */
  readonly text: string;
  readonly updatedAt: Instant;
  /** Absent for servers, whose status is a matter of their source and cannot be asked for. */
  readonly status?: BundleStatus;
}

/** What tells the kinds of entries apart when they are served; everything else treats them alike. */
export interface KindRules {
  /** Member of the list envelope that holds the items. */
  readonly list: string;
  readonly body: (version: StoredVersion, isLatest: boolean) => VersionBody;
}

export const KINDS: PerKind<KindRules> = {
  server: { list: 'servers', body: serverBody },
  skill: { list: 'skills', body: bundleBody },
  plugin: { list: 'plugins', body: bundleBody },
};

/** `{server, _meta}` around the document as it was ingested, byte for byte. */
function serverBody(version: StoredVersion, isLatest: boolean): VersionBody {
  const { text, updatedAt } = serverMeta(version, isLatest);
  return { text: `{"server":${version.document},"_meta":${text}}`, updatedAt };
}

/** The document itself with what only the registry knows; what it does not know stays. */
function bundleBody({ document, createdAt, updatedAt }: StoredVersion, isLatest: boolean): VersionBody {
  const members = parseLossless(document, { maxBytes: Infinity, what: 'document' });
  const given = typeof members === 'object' && members !== null ? members : {};
  const status = bundleStatus('status' in given ? String(given.status) : undefined);
  return {
    text: serializeLossless({ ...given, status, isLatest, createdAt, updatedAt }),
    updatedAt: parseInstant(updatedAt) ?? EPOCH,
    status,
  };
}

/** What the source said about the version, and when our store first and last saw it. */
type MetaInput = Pick<StoredVersion, 'official' | 'createdAt' | 'updatedAt'>;

/** JSON text of the wrapper's `_meta`. */
type ServerMeta = Omit<VersionBody, 'status'>;

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
  const official = officialOf(input.official);
  const status = statusOf(official);
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
  return official !== null && /deleted/i.test(official) && statusOf(officialOf(official)) === 'deleted';
}

type Official = Readonly<Record<string, unknown>>;

function officialOf(text: string | null): Official {
  const official: unknown = JSON.parse(text ?? '{}');
  return isRecord(official) ? official : {};
}

function statusOf({ status }: Official): string | undefined {
  return typeof status === 'string' ? status.toLowerCase() : undefined;
}

/** An RFC 3339 time, as it was written. */
function timeOf(value: unknown): string | undefined {
  return typeof value === 'string' && parseInstant(value) !== undefined ? value : undefined;
}

/**
 * What is known of a version beside its document, as the store keeps it: the official block of the registry it came
 * from. Where that does not say a status, the publisher's own word counts (docs/behaviour/registry.md#consumer-api).
 * Null when nothing is known.
 */
export function officialText(entry: Entry): string | null {
  if (entry.kind !== 'server') return null;
  const { official, document } = entry;
  const isDeprecated = !official?.status && extensionStatus(document) === 'deprecated';
  if (!isDeprecated) return official === undefined ? null : JSON.stringify(official);
  return JSON.stringify({ ...official, status: 'deprecated' });
}
