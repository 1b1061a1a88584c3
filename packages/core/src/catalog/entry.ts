import { z } from 'zod';
import { isRecord } from '../json/is-record.ts';
import { repeatedMember, type CompactText } from '../json/scan.ts';
import { pluginDocument, skillDocument, type Plugin, type Skill } from './bundle.ts';
import { faultLine } from './checked-text.ts';
import { serverDocument, type ServerDocument } from './server-json.ts';

interface Common {
  readonly name: string;
  readonly version: string;
  /** The document as its publisher wrote it, without white space between tokens: what a registry stores and serves. */
  readonly json: string;
}

/** One version of an MCP server. `document` is a decoded view for reading; `json` is the truth. */
export interface ServerEntry extends Common {
  readonly kind: 'server';
  readonly document: ServerDocument;
  /** Status, times and isLatest, where the catalogue came from a registry that says so. */
  readonly official?: OfficialMeta;
}

interface BundleEntry<Kind, Document> extends Common {
  readonly kind: Kind;
  readonly namespace: string;
  readonly document: Document;
}

export type Entry = ServerEntry | BundleEntry<'skill', Skill> | BundleEntry<'plugin', Plugin>;
export type EntryKind = Entry['kind'];

/** Identity of a version within one catalogue: kind, namespace (skills and plugins), name, version. */
export function entryKey(entry: Entry): string {
  const namespace = entry.kind === 'server' ? '' : entry.namespace;
  return JSON.stringify([entry.kind, namespace, entry.name, entry.version]);
}

/** Key of the registry's own block beside a served document. */
export const OFFICIAL_META = 'io.modelcontextprotocol.registry/official';

const text = z.string().nullish().catch(undefined);
const timestamp = z
  .string()
  .refine((value) => !Number.isNaN(Date.parse(value)))
  .nullish()
  .catch(undefined);

/**
 * What a registry says about a version it serves. Times are RFC 3339 and stay as written; unknown members stay. A member
 * that cannot be read is as if it were missing: that a version is deleted must not be lost with a date beside it.
 */
const officialMeta = z.looseObject({
  status: text,
  publishedAt: timestamp,
  updatedAt: timestamp,
  statusChangedAt: timestamp,
  isLatest: z.boolean().nullish().catch(undefined),
});

type OfficialMeta = z.infer<typeof officialMeta>;

const envelope = z.looseObject({ [OFFICIAL_META]: officialMeta });

/** The official block of an item's outer `_meta`; undefined when there is none. */
export function officialMetaOf(outerMeta: unknown): OfficialMeta | undefined {
  return envelope.safeParse(outerMeta).data?.[OFFICIAL_META];
}

/** One candidate of a catalogue: its text, the value this text has, and the registry's `_meta` beside it. */
export interface RawEntry extends CompactText {
  readonly kind: EntryKind;
  readonly value: unknown;
  readonly outerMeta?: unknown;
}

export type Decoded = { readonly entry: Entry } | { readonly fault: string };

/** Shapes that are no server documents although they resemble one; accepting them would serve nonsense. */
function foreignShape(value: unknown): string | undefined {
  if (!isRecord(value)) return 'expected an object';
  if ('version_detail' in value) {
    return 'it has the format that came before server.json (member "version_detail"); export the catalogue again';
  }
  if ('namespace' in value) {
    return 'it looks like a skill or plugin (member "namespace"); put it under data.skills or data.plugins';
  }
  return undefined;
}

function read<T>(schema: z.ZodType<T>, value: unknown, toEntry: (document: T) => Entry): Decoded {
  const decoded = schema.safeParse(value);
  return decoded.success ? { entry: toEntry(decoded.data) } : { fault: faultLine(decoded.error) };
}

/**
 * Decodes one candidate, or says why it is none. An object that names a member twice is refused: readers differ on
 * which of the two counts, so what was checked here might not be what a client sees.
 */
export function decodeEntry({ kind, value, json, members, outerMeta }: RawEntry): Decoded {
  // The later of two equal members takes the place of the earlier one, so the value then has fewer than the text.
  const repeated = membersOf(value) === members ? undefined : repeatedMember(json);
  if (repeated !== undefined) return { fault: `the member "${repeated}" occurs twice in one object` };
  if (kind === 'skill') return read(skillDocument, value, (document) => bundle(kind, document, json));
  if (kind === 'plugin') return read(pluginDocument, value, (document) => bundle(kind, document, json));
  const fault = foreignShape(value);
  if (fault !== undefined) return { fault };
  const official = outerMeta === undefined ? undefined : officialMetaOf(outerMeta);
  return read(serverDocument, value, (document) => ({
    kind,
    name: document.name,
    version: document.version,
    json,
    document,
    ...(official === undefined ? {} : { official }),
  }));
}

/** How many members the objects in a value have at all levels. Deep values must not exhaust the stack. */
function membersOf(value: unknown): number {
  let members = 0;
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const inner: readonly unknown[] = Object.values(next);
    if (!Array.isArray(next)) members += inner.length;
    for (const each of inner) if (typeof each === 'object') open.push(each);
  }
  return members;
}

function bundle<K extends string, D extends Skill | Plugin>(kind: K, document: D, json: string) {
  const { namespace, name, version } = document;
  return { kind, namespace, name, version, json, document };
}
