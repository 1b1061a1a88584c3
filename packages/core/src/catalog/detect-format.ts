import { isRecord } from '../json/is-record.ts';
/** The file formats a catalogue comes in. */
export type CatalogueFormat =
  /** `{version, meta, data: {servers, skills, plugins}}`, the current ToolHive file. */
  | 'registry-file'
  /** `{servers: {name: {image}}, remote_servers: {name: {url}}}`, the older ToolHive file. */
  | 'toolhive-native'
  /** `{servers: [{server, _meta}], metadata}`, an answer of the MCP Registry API v0.1; `skills` and `plugins` may stand beside. */
  | 'official-list'
  /** An array of server documents or of `{server, _meta}`. */
  | 'server-array'
  /** One server document. */
  | 'server-json';

function described(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function named(keys: readonly string[]): string {
  const shown = keys.slice(0, 8).map((key) => `"${key.slice(0, 40)}"`);
  return keys.length > shown.length ? `${shown.join(', ')}, …` : shown.join(', ');
}

/**
 * Tells the formats apart by their shape alone, or says what was found instead (`{ found: 'an object with "a", "b"' }`).
 */
export function detectFormat(value: unknown): CatalogueFormat | { readonly found: string } {
  if (Array.isArray(value)) return 'server-array';
  if (!isRecord(value)) return { found: described(value) };
  const { data, servers } = value;
  if (isRecord(data)) {
    for (const key of ['servers', 'skills', 'plugins']) {
      const list = data[key];
      if (list !== undefined && list !== null && !Array.isArray(list)) {
        return { found: `${described(list)} in "data.${key}" where an array belongs` };
      }
      if (Array.isArray(list)) return 'registry-file';
    }
    return { found: `"data" without "servers", "skills" or "plugins"` };
  }
  if (data !== undefined && servers === undefined) return { found: `${described(data)} in "data"` };
  if (Array.isArray(servers)) return 'official-list';
  if (isRecord(servers) || isRecord(value['remote_servers']) || Array.isArray(value['groups'])) {
    return 'toolhive-native';
  }
  if (servers !== undefined) return { found: `${described(servers)} in "servers"` };
  if (typeof value['name'] === 'string') return 'server-json';
  const keys = Object.keys(value);
  return { found: keys.length === 0 ? 'an empty object' : `an object with ${named(keys)}` };
}
