import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readJson } from '@skep/core/files/read-limited.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { CLIENT_NAMES } from './table.ts';

const written = shape.members({
  /** As the client's file names it. */
  name: shape.text,
  workload: shape.text,
  url: shape.optional(shape.text),
  /** It runs `skep proxy stdio`. */
  stdio: shape.withDefault(shape.bool, false),
});

const stored = shape.members({
  /** Entries run a command instead of naming a URL. */
  stdio: shape.withDefault(shape.bool, false),
  /** Workloads that are connected by name. */
  workloads: shape.orEmpty(shape.listOf(shape.text), []),
  entries: shape.orEmpty(shape.listOf(written), []),
  /** Skep made the file. */
  made: shape.withDefault(shape.bool, false),
  emptied: shape.optional(
    shape.members({ place: shape.optional(shape.text), root: shape.optional(shape.text) }),
  ),
});

/** One entry that Skep wrote into a client's file. */
export type Written = shape.ShapeType<typeof written>;

/** What Skep knows of one client: which servers it is to have by name, and what was written into its file. */
export type ClientRecord = shape.ShapeType<typeof stored>;

const NOTHING: ClientRecord = { stdio: false, workloads: [], entries: [], made: false };
const MAX_BYTES = 4 * 1024 * 1024;

const pathOf = (places: Places, client: string): string => join(places.clientsDir, `${client}.json`);

/** What is known of a client. Of a damaged file nothing is: entries are known by where they lead to as well. */
export async function readRecord(places: Places, client: string): Promise<ClientRecord> {
  try {
    const value = await readJson(pathOf(places, client), { maxBytes: MAX_BYTES });
    return stored(value, (why) => {
      throw new SkepError('file/not-json', { message: why });
    });
  } catch (error) {
    if (error instanceof SkepError) return NOTHING;
    throw error;
  }
}

/** A client of which nothing is to be known has no file. */
export async function writeRecord(places: Places, client: string, record: ClientRecord): Promise<void> {
  const isNeeded = record.entries.length > 0 || record.workloads.length > 0 || record.stdio;
  if (!isNeeded) return removeFile(pathOf(places, client));
  await atomicWrite(pathOf(places, client), `${JSON.stringify(record, null, 2)}\n`);
}

/** The clients of which something is known, sorted. */
export function recordedClients(places: Places): readonly string[] {
  try {
    const files = new Set(readdirSync(places.clientsDir));
    return CLIENT_NAMES.filter((name) => files.has(`${name}.json`));
  } catch {
    return [];
  }
}
