import type { z } from 'zod';
import { faultLine } from './checked-text.ts';
import type { Entry, EntryKind } from './entry.ts';
import { repeatedMember, type CompactText } from '../json/scan.ts';
import { officialMetaOf } from './official-meta.ts';
import { pluginDocument, skillDocument, type Plugin, type Skill } from './bundle.ts';
import { serverDocument } from './server-json.ts';

/** One candidate of a catalogue: its text, the value this text has, and the registry's `_meta` beside it. */
export interface RawEntry extends CompactText {
  readonly kind: EntryKind;
  readonly value: unknown;
  readonly outerMeta?: unknown;
}

export type Decoded = { readonly entry: Entry } | { readonly fault: string };

/** Shapes that are no server documents although they resemble one; accepting them would serve nonsense. */
function foreignShape(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'expected an object';
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
