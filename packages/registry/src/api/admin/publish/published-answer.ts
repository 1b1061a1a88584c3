import { hash } from 'node:crypto';
import { bundleStatus } from '@skep/core/catalog/bundle.ts';
import type { Entry } from '@skep/core/catalog/entry.ts';
import { newestVersion } from '@skep/core/catalog/version-order.ts';
import { parseLossless, serializeLossless } from '@skep/core/json/lossless.ts';
import type { PublishedVersion } from '../../../store/decisions.ts';
import type { Answer } from '../../route/route.ts';

/**
 * 201: of a server its bare document, byte for byte what is stored; of a skill or plugin the document with what the
 * registry knows about it (docs/behaviour/registry.md#publishing). `registry` is one that serves it, for the Location
 * header.
 */
export function publishedAnswer(
  entry: Entry,
  published: PublishedVersion,
  registry: string | undefined,
): Answer {
  const body = entry.kind === 'server' ? entry.json : bundleBody(entry, published);
  return {
    status: 201,
    ...(registry === undefined ? {} : { location: consumerPath(entry, registry) }),
    body: () => body,
  };
}

function consumerPath(entry: Entry, registry: string): string {
  const of = encodeURIComponent;
  const base = `/registry/${of(registry)}/v0.1`;
  const version = `versions/${of(entry.version)}`;
  if (entry.kind === 'server') return `${base}/servers/${of(entry.name)}/${version}`;
  return `${base}/x/dev.skep/${entry.kind}s/${of(entry.namespace)}/${of(entry.name)}/${version}`;
}

function bundleBody(entry: Exclude<Entry, { kind: 'server' }>, published: PublishedVersion): string {
  const document = parseLossless(entry.json, { maxBytes: Infinity });
  const { createdAt, updatedAt } = published.version;
  return serializeLossless({
    id: versionId(published),
    ...(typeof document === 'object' ? document : {}),
    status: bundleStatus(entry.document.status),
    isLatest: newestVersion(published.versions) === entry.version,
    createdAt,
    updatedAt,
  });
}

/** A UUID (RFC 9562 version 8) that follows from what identifies a version, so every replica gives the same. */
function versionId({ source, kind, namespace, name, version }: PublishedVersion): string {
  const digest = hash('sha256', JSON.stringify([source, kind, namespace, name, version.version]));
  const variant = ((Number.parseInt(digest.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `${variant}${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join('-');
}
