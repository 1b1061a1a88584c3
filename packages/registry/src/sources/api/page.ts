import { parseCatalogueText, mayHoldMoreValuesThan } from '@skep/core/catalog/catalogue-text.ts';
import { findElements, memberSlice, rawAt } from '@skep/core/json/scan.ts';
import { officialMetaOf } from '@skep/core/catalog/entry.ts';
import { parseLossless, serializeLossless } from '@skep/core/json/lossless.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';

/** What a page lists, by the name of its member. */
export type ListName = 'servers' | 'skills' | 'plugins';

/** One version of an entry as a registry lists it. What is wrong with it is for the reading of the catalogue to say. */
export interface ApiItem {
  /** Tells versions apart: name and version, or the item itself where it has none. */
  readonly key: string;
  /** `{"server":…,"_meta":…}`, exactly as it was sent; of a skill or plugin its document. */
  readonly json: string;
  readonly deleted: boolean;
  /** Milliseconds since the epoch; absent where the registry does not say. */
  readonly updatedAt?: number;
}

/** Of one page. */
const MAX_VALUES = 4_000_000;

export interface ApiPage {
  readonly items: readonly ApiItem[];
  /** Where to go on; absent on the last page. */
  readonly nextCursor?: string;
}

// null instead of an empty list or an absent cursor is what some servers' JSON encoders write.
const items = z.array(z.unknown()).nullable();
const page = z.looseObject({
  metadata: z.looseObject({ nextCursor: z.string().nullish(), next_cursor: z.string().nullish() }).nullish(),
});

const identity = z.looseObject({
  server: z.looseObject({ name: z.string(), version: z.string() }),
  _meta: z.unknown(),
});

const bundleIdentity = z.looseObject({ namespace: z.string(), name: z.string(), version: z.string() });

export interface PageOptions {
  /** Names the page in messages. */
  readonly label: string;
  readonly maxServers: number;
  readonly list: ListName;
}

/**
 * Reads one page of `GET /v0.1/servers` of the MCP Registry API, or of the lists that vendors have beside it. Fails with
 * `source/bad-answer` when it is none, `source/too-large` when it holds more values or servers than it may,
 * `catalog/not-json` and `catalog/wrong-shape` as any catalogue does.
 */
export function readPage(body: Uint8Array, { label, maxServers, list }: PageOptions): ApiPage {
  if (mayHoldMoreValuesThan(MAX_VALUES, body)) throw tooLarge(label, `${MAX_VALUES} values`);
  const { text, value } = parseCatalogueText(body, { label });
  const decoded = page.safeParse(value);
  const listed = items.safeParse(decoded.data?.[list]);
  if (!decoded.success || !listed.success) {
    throw new SkepError('source/bad-answer', {
      message: `"${label}" answered no list of ${list} of the MCP Registry API`,
      hint: 'check that the endpoint is the address before "/v0.1/servers"',
      detail: { absent: decoded.success && !(list in decoded.data) },
    });
  }
  const values = listed.data ?? [];
  if (values.length > maxServers) throw tooLarge(label, `${maxServers} ${list}`);
  const array = memberSlice(text, [list]) ?? '';
  const slices = findElements(array).map((span) => rawAt(array, span));
  const read = list === 'servers' ? readItem : readBundle;
  const found = values.map((item, index) => read(item, slices[index] ?? ''));
  const nextCursor = decoded.data.metadata?.nextCursor ?? decoded.data.metadata?.next_cursor ?? '';
  return { items: found, ...(nextCursor === '' ? {} : { nextCursor }) };
}

function readItem(value: unknown, json: string): ApiItem {
  const { data } = identity.safeParse(value);
  if (data === undefined) return { key: json, json, deleted: false };
  const { name, version } = data.server;
  const official = officialMetaOf(data._meta);
  const updatedAt = Date.parse(official?.updatedAt ?? '');
  return {
    key: JSON.stringify([name, version]),
    json,
    deleted: official?.status?.toLowerCase() === 'deleted',
    ...(Number.isNaN(updatedAt) ? {} : { updatedAt }),
  };
}

/** Members that say where and when a registry has a bundle; ours says that itself. */
const OF_REGISTRY = ['id', 'isLatest', 'createdAt', 'updatedAt'];

function readBundle(value: unknown, json: string): ApiItem {
  const { data } = bundleIdentity.safeParse(value);
  if (data === undefined) return { key: json, json, deleted: false };
  const document = parseLossless(json, { maxBytes: Infinity });
  const own = Object.entries(typeof document === 'object' ? (document ?? {}) : {});
  return {
    key: JSON.stringify([data.namespace, data.name, data.version]),
    json: serializeLossless(Object.fromEntries(own.filter(([key]) => !OF_REGISTRY.includes(key)))),
    deleted: false,
  };
}

function tooLarge(label: string, what: string): SkepError {
  return new SkepError('source/too-large', { message: `"${label}" answered more than ${what} on one page` });
}
