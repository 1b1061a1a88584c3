/** Everything that a test says of a server in a catalogue; the rest is as it usually is. */
export interface EntryUnderTest {
  readonly description?: string;
  readonly title?: string;
  readonly version?: string;
  readonly packages?: readonly object[];
  readonly remotes?: readonly object[];
  readonly repository?: object;
  /** What the publisher says beside the standard, of the first image or package. */
  readonly extension?: object;
}

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
const PUBLISHER = 'io.modelcontextprotocol.registry/publisher-provided';

/** A package entry of the image `fake:1`, over standard input and output. */
export function imagePackage(more: object = {}): object {
  return { registryType: 'oci', identifier: 'fake:1', transport: { type: 'stdio' }, ...more };
}

/** A catalogue document with servers by name. */
export function catalogueOf(entries: Readonly<Record<string, EntryUnderTest>>): object {
  const servers = Object.entries(entries).map(([name, { extension, ...entry }]) => ({
    $schema: SCHEMA,
    name,
    description: `Serves ${name}`,
    version: '1.0.0',
    ...(entry.packages === undefined && entry.remotes === undefined ? { packages: [imagePackage()] } : {}),
    ...entry,
    ...(extension === undefined
      ? {}
      : { _meta: { [PUBLISHER]: { 'io.github.stacklok': { 'fake:1': extension } } } }),
  }));
  return { version: '1.0.0', meta: { last_updated: '2026-01-01T00:00:00Z' }, data: { servers } };
}
