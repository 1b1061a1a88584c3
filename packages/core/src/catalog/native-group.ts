import { isRecord } from '../json/is-record.ts';

/** Namespace given to servers whose native name has none, as other readers of this format do. */
const DEFAULT_NAMESPACE = 'io.github.stacklok';

/** What a native entry is called as a server document. */
export const fullName = (name: string): string =>
  name.includes('/') ? name : `${DEFAULT_NAMESPACE}/${name}`;

/** Servers that a catalogue wants to be run together. */
export interface CatalogueGroup {
  readonly name: string;
  readonly description: string;
  /** Full names, as the converted documents have them. */
  readonly servers: readonly string[];
}

/** One group of a native file, whose members `convertNative` gives; undefined for what is none. */
export function nativeGroup(value: unknown): CatalogueGroup | undefined {
  if (!isRecord(value) || typeof value['name'] !== 'string') return undefined;
  const { name, description, servers, remote_servers: remotes } = value;
  const members = [servers, remotes].flatMap((map) => (isRecord(map) ? Object.entries(map) : []));
  return {
    name,
    description: typeof description === 'string' ? description : '',
    servers: members.map(([key, entry]) => {
      const own = isRecord(entry) ? entry['name'] : undefined;
      return fullName(typeof own === 'string' && own !== '' ? own : key);
    }),
  };
}
