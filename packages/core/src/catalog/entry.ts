import type { OfficialMeta } from './official-meta.ts';
import type { Plugin, Skill } from './bundle.ts';
import type { ServerDocument } from './server-json.ts';

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

export interface SkillEntry extends Common {
  readonly kind: 'skill';
  readonly namespace: string;
  readonly document: Skill;
}

export interface PluginEntry extends Common {
  readonly kind: 'plugin';
  readonly namespace: string;
  readonly document: Plugin;
}

export type Entry = ServerEntry | SkillEntry | PluginEntry;
export type EntryKind = Entry['kind'];

/** Identity of a version within one catalogue: kind, namespace (skills and plugins), name, version. */
export function entryKey(entry: Entry): string {
  const namespace = entry.kind === 'server' ? '' : entry.namespace;
  return JSON.stringify([entry.kind, namespace, entry.name, entry.version]);
}
