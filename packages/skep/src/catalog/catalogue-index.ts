import type { BigIntStats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openDocument } from '@skep/core/catalog/catalogue-document.ts';
import { detectFormat, listedEntries, serverWithin } from '@skep/core/catalog/catalogue-format.ts';
import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { newestPerName } from '@skep/core/catalog/find.ts';
import { isServerDocument } from '@skep/core/catalog/quick-servers.ts';
import { searchableOf, type Searchable } from '@skep/core/catalog/rank.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { compactText, memberSlice, repeatedMember } from '@skep/core/json/scan.ts';
import type { Clock } from '@skep/core/time/clock.ts';

/**
 * What is searched of a catalogue file, and where each server stands in it, so that looking one up among thousands needs
 * neither all of the file nor its checks (decision 0247). It is used for the very file that it was made from, and what
 * it leads to is read from there and checked again.
 */

/** One server, in its newest version: `start` and `end` are where its bytes stand. */
export interface IndexRow extends Searchable {
  readonly version: string;
  readonly start: number;
  readonly end: number;
}

/** Where an index lies, and for what it must have been made. */
export interface IndexPlace {
  readonly catalogue: string;
  readonly cacheDir: string;
  /** Of Skep: another one may search other texts. */
  readonly version: string;
}

/** Smaller catalogues are read in the time that an index takes. */
const MIN_BYTES = 128 * 1024;
const MAX_INDEX_BYTES = 32 * 1024 * 1024;
/** A file that changed so lately may change again without another time: some file systems count in whole seconds. */
const SETTLED_MS = 2_000;

/** The servers of the catalogue; undefined where there is no index, or one of another file or time. */
export async function readIndex(place: IndexPlace): Promise<readonly IndexRow[] | undefined> {
  try {
    const [made, rows, ...rest] = (await readText(fileOf(place), { maxBytes: MAX_INDEX_BYTES })).split('\n');
    const now = await statOf(place.catalogue);
    if (now === undefined || rest.length > 0 || made !== identityOf(now, place)) return undefined;
    const value: unknown = JSON.parse(rows ?? '');
    return Array.isArray(value) && value.every(isRow) ? value : undefined;
  } catch {
    // Whatever is wrong with it, or with the catalogue, shows when the catalogue itself is read.
    return undefined;
  }
}

/** The entries of some rows; undefined where the catalogue does not hold them there any more. */
export async function entriesAt(
  rows: readonly IndexRow[],
  { catalogue }: IndexPlace,
): Promise<readonly ServerEntry[] | undefined> {
  if (rows.length === 0) return [];
  // There may be more of them than a function takes arguments.
  const start = rows.reduce((least, row) => Math.min(least, row.start), Infinity);
  const length = rows.reduce((most, row) => Math.max(most, row.end), 0) - start;
  try {
    await using file = await open(catalogue);
    const bytes = Buffer.allocUnsafeSlow(length);
    const { bytesRead } = await file.read(bytes, 0, length, start);
    if (bytesRead !== length) return undefined;
    const entries = rows.map((row) =>
      entryIn(bytes.toString('utf8', row.start - start, row.end - start), row),
    );
    return entries.every((entry) => entry !== undefined) ? entries : undefined;
  } catch {
    return undefined;
  }
}

/** Follows a read of the catalogue, and leaves an index of what was found, where one is worth it and can be. */
export async function indexWhileReading(
  place: IndexPlace,
  clock: Pick<Clock, 'now'>,
): Promise<(bytes: Buffer, entries: readonly ServerEntry[]) => Promise<void>> {
  const before = await statOf(place.catalogue);
  return async (bytes, entries) => {
    if (before === undefined || bytes.length < MIN_BYTES) return;
    if (clock.now() - Math.max(Number(before.ctimeMs), Number(before.mtimeMs)) < SETTLED_MS) return;
    const rows = rowsOf(bytes, entries);
    const after = await statOf(place.catalogue);
    const made = identityOf(before, place);
    if (rows === undefined || after === undefined || identityOf(after, place) !== made) return;
    const text = `${made}\n${JSON.stringify(rows)}`;
    if (text.length * 3 > MAX_INDEX_BYTES && Buffer.byteLength(text) > MAX_INDEX_BYTES) return;
    try {
      await atomicWrite(fileOf(place), text, { durable: false });
    } catch (error) {
      // A cache that cannot be written makes nothing worse.
      if (!(error instanceof SkepError)) throw error;
    }
  };
}

/** In the cache: there is one, for the catalogue that is in use. Two lines of JSON. */
export const INDEX_FILE = 'catalogue-index';

function fileOf({ cacheDir }: IndexPlace): string {
  return join(cacheDir, INDEX_FILE);
}

async function statOf(path: string): Promise<BigIntStats | undefined> {
  return stat(path, { bigint: true }).catch(() => undefined);
}

/** On one line. */
function identityOf(
  { dev, ino, size, mtimeNs, ctimeNs }: BigIntStats,
  { catalogue, version }: IndexPlace,
): string {
  const numbers = [dev, ino, size, mtimeNs, ctimeNs].map(String);
  return JSON.stringify([version, catalogue, ...numbers]);
}

/** Undefined where a server is not found as it stands in the list, and be it one. */
function rowsOf(bytes: Buffer, entries: readonly ServerEntry[]): readonly IndexRow[] | undefined {
  const document = openDocument(bytes, 'the catalogue');
  const format = detectFormat(document.frame);
  const candidates = typeof format === 'string' ? listedEntries(format, document) : undefined;
  const places = new Map<string, { readonly start: number; readonly end: number } | undefined>();
  for (const one of candidates ?? []) {
    if ('fault' in one || one.kind !== 'server') continue;
    const { value, start, end, json } = one;
    if (!isRecord(value) || start === undefined || end === undefined) continue;
    const isPlain = isServerDocument(value) && repeatedMember(json) === undefined;
    places.set(`${String(value['name'])}@${String(value['version'])}`, isPlain ? { start, end } : undefined);
  }
  const rows = newestPerName(entries).map((entry) => {
    const place = places.get(`${entry.name}@${entry.version}`);
    return place && { ...searchableOf(entry), version: entry.version, ...place };
  });
  return rows.every((row) => row !== undefined) ? rows : undefined;
}

function entryIn(text: string, row: IndexRow): ServerEntry | undefined {
  const value = parseJson(text);
  const wrapped = serverWithin(value);
  const document: unknown = wrapped ?? value;
  if (!isServerDocument(document)) return undefined;
  const { name, version } = document;
  if (name !== row.name || version !== row.version) return undefined;
  return {
    kind: 'server',
    name,
    version,
    document,
    get json() {
      return compactText((wrapped && memberSlice(text, ['server'])) ?? text).json;
    },
  };
}

function isRow(value: unknown): value is IndexRow {
  if (!isRecord(value)) return false;
  const { name, version, title = '', description, tags, status = '', tier = '', start, end } = value;
  return (
    [name, version, title, description, status, tier].every((one) => typeof one === 'string') &&
    Array.isArray(tags) &&
    tags.every((tag) => typeof tag === 'string') &&
    isOffset(start) &&
    isOffset(end) &&
    start < end
  );
}

function isOffset(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
