import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { Editor, Emptied, Parsed } from './formats/editor.ts';
import type { Entry } from './entry.ts';
import type { Client, FileFormat } from './table.ts';

/** An entry that is to be there, or to go. */
export interface Change {
  readonly name: string;
  readonly value: Entry | undefined;
}

export interface Edited {
  readonly text: string;
  /** What the place of the servers was before the first entry; undefined where it stays as it was said. */
  readonly emptied?: Emptied;
}

const BOM = '\u{FEFF}';

/** The library of a format is loaded when a file of it is read. */
export async function editorOf(format: FileFormat): Promise<Editor> {
  if (format === 'jsonc') return (await import('./formats/jsonc.ts')).jsonc;
  if (format === 'yaml') return (await import('./formats/yaml.ts')).yaml;
  return (await import('./formats/toml.ts')).toml;
}

/** The servers of a client's file by name. Fails with any error where the file is not what the client reads. */
export async function readEntries(client: Client, text: string): Promise<ReadonlyMap<string, unknown>> {
  const editor = await editorOf(client.format);
  const parsed = editor.parse(withoutMark(text), spotOf(client));
  return new Map(listOf(client, parsed));
}

/**
 * The text with the changes made, and nothing else changed: what it says is compared before and after, entry by entry.
 * Fails with any error where that cannot be done.
 */
export async function editText(
  client: Client,
  given: string,
  { changes, emptied }: { readonly changes: readonly Change[]; readonly emptied: Emptied | undefined },
): Promise<Edited> {
  const editor = await editorOf(client.format);
  const spot = spotOf(client);
  const before = withoutMark(given);
  const parsed = editor.parse(before, spot);
  listOf(client, parsed);
  let text = before;
  let said: Emptied | undefined;
  for (const { name, value } of changes) {
    if (value === undefined)
      text = editor.remove(text, spot, { name, emptied: said === undefined ? emptied : said });
    else {
      const set = editor.set(text, spot, { name, value });
      ({ text } = set);
      if (set.emptied !== undefined) said = set.emptied;
    }
  }
  verify(client, changes, [parsed, editor.parse(text, spot)]);
  return { text: given.startsWith(BOM) ? BOM + text : text, ...(said !== undefined && { emptied: said }) };
}

function verify(
  client: Client,
  changes: readonly Change[],
  [before, after]: readonly [Parsed | undefined, Parsed | undefined],
): void {
  const entries = new Map(listOf(client, after));
  const asWanted = changes.every(({ name, value }) =>
    value === undefined ? !entries.has(name) : isDeepStrictEqual(plain(entries.get(name)), plain(value)),
  );
  const names = new Set(changes.map(({ name }) => name));
  const rest = (one: Parsed | undefined): unknown => [
    Object.entries(one?.root ?? {}).filter(([key]) => key !== client.key),
    listOf(client, one).filter(([name]) => !names.has(name)),
  ];
  if (!asWanted || !isDeepStrictEqual(rest(before), rest(after)))
    throw new TypeError('it is written in a way that Skep does not edit');
}

/** Without what libraries give their objects for prototypes. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

const spotOf = ({ key, isList }: Client) => ({ key, ...(isList && { isList }) });

const withoutMark = (text: string): string => (text.startsWith(BOM) ? text.slice(1) : text);

/** Names and values in the order of the file. Fails where the place of the servers is something else, or a name is there twice. */
function listOf(
  { key, isList }: Client,
  parsed: Parsed | undefined,
): readonly (readonly [string, unknown])[] {
  const servers = parsed?.servers;
  if (servers === undefined) return [];
  if (!isList) {
    if (isRecord(servers)) return Object.entries(servers);
    throw new TypeError(`"${key}" in it is not what it should be`);
  }
  if (!Array.isArray(servers)) throw new TypeError(`"${key}" in it is not what it should be`);
  const entries = servers.map((one: unknown, at) => {
    const name = isRecord(one) ? one['name'] : undefined;
    return [typeof name === 'string' ? name : `\0${at}`, one] as const;
  });
  if (new Set(entries.map(([name]) => name)).size < entries.length)
    throw new TypeError(`a name stands in "${key}" twice`);
  return entries;
}
