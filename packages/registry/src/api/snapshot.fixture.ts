import { buildBlock } from '../engine/block.ts';
import { buildSnapshot, type Snapshot } from '../engine/snapshot.ts';
import type { StoredEntry } from '../store/rows.ts';

// Snapshots for the tests of this folder.

const CREATED = '2026-01-01T00:00:00.000Z';

/** An entry as the store keeps it; versions from 2 on were updated later. */
export function storedServer(
  name: string,
  versions: readonly string[] = ['1.0.0'],
  changes: Partial<StoredEntry> & { readonly title?: string } = {},
): StoredEntry {
  const { title = null, ...entry } = changes;
  return {
    kind: 'server',
    namespace: '',
    name,
    claims: '',
    versions: versions.map((version) => ({
      version,
      title,
      description: `Serves ${name}`,
      document: JSON.stringify({ name, version, description: `Serves ${name}` }),
      official: null,
      createdAt: CREATED,
      updatedAt: version.startsWith('2') ? '2026-03-01T00:00:00.000Z' : CREATED,
    })),
    ...entry,
  };
}

/** A skill or plugin; `status` is written into the document as it is given. */
export function storedBundle(
  kind: 'skill' | 'plugin',
  [namespace, name]: readonly [namespace: string, name: string],
  versions: readonly string[] = ['1.0.0'],
  { claims = '', status }: { readonly claims?: string; readonly status?: string } = {},
): StoredEntry {
  return {
    ...storedServer(name, versions),
    kind,
    namespace,
    claims,
    versions: storedServer(name, versions).versions.map((version) => ({
      ...version,
      document: JSON.stringify({
        namespace,
        name,
        description: version.description,
        version: version.version,
        ...(status === undefined ? {} : { status }),
      }),
    })),
  };
}

export interface RegistryFixture {
  readonly name: string;
  readonly claims?: string;
  /** Highest priority first. */
  readonly sources: readonly string[];
}

/** What a server with these sources and registries serves. */
export function snapshotOf(
  sources: Readonly<Record<string, readonly StoredEntry[]>>,
  registries: readonly RegistryFixture[] = [{ name: 'all', sources: Object.keys(sources) }],
): Snapshot {
  return buildSnapshot(
    registries.map(({ claims = '', ...registry }) => ({ ...registry, claims })),
    new Map(Object.entries(sources).map(([name, entries]) => [name, buildBlock(name, entries)])),
  );
}
