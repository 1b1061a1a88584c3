import { bundleStatus, type BundleStatus } from '@skep/core/catalog/bundle.ts';
import { parseLossless, serializeLossless } from '@skep/core/json/lossless.ts';
import type { EntryIdentity, EntryKind, StoredVersion } from '../store/rows.ts';
import { EPOCH, type Instant, parseInstant } from './instant.ts';
import { serverMeta } from './server-meta.ts';

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

export const KINDS: Readonly<Record<EntryKind, KindRules>> = {
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

/** Sorts below every character of a namespace, so that comparing keys compares namespace first and then name. */
const BETWEEN = '\u0000';

/** What entries of one kind are ordered and found by: equal keys are the same entry. */
export function entryKey({ namespace, name }: Pick<EntryIdentity, 'namespace' | 'name'>): string {
  return namespace === '' ? name : `${namespace}${BETWEEN}${name}`;
}

/** The key as cursors and searches show it: `namespace/name`. */
export function shownKey(key: string): string {
  return key.replace(BETWEEN, '/');
}

/** The key that is shown like this. A server's namespace is part of its name, a bundle's stands before the last slash. */
export function keyOfShown(kind: EntryKind, shown: string): string {
  if (kind === 'server') return shown;
  const slash = shown.lastIndexOf('/');
  return slash < 0 ? shown : entryKey({ namespace: shown.slice(0, slash), name: shown.slice(slash + 1) });
}
