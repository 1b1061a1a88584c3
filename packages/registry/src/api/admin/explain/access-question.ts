import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { AccessFacts, EntryCopy } from '../../../access/explain-access.ts';
import type { EntryKind, NamedRegistry, NamedSource, StoredEntry } from '../../../store/rows.ts';
import type { Store } from '../../../store/store.ts';
import { unknownRegistry } from '../registries/visible-registry.ts';
import { unknownSource } from '../sources/visible-source.ts';

/** What somebody wants to have explained; all absent asks about roles only. */
export interface AccessQuestion {
  readonly registry?: string;
  readonly source?: string;
  readonly entry?: string;
  readonly kind: EntryKind;
}

/** Where the facts come from: the store, or a configuration file that is not served yet. */
export interface AccessRecords {
  readonly registries: readonly NamedRegistry[];
  readonly sources: readonly NamedSource[];
  readonly readEntries: Store['readEntries'];
}

/**
 * Looks up what the question names. An entry is searched in the sources of the registry, in its source, or everywhere.
 * Fails with `registry/unknown-registry`, `store/source-unknown` or `registry/not-found`.
 */
export async function accessFacts(records: AccessRecords, question: AccessQuestion): Promise<AccessFacts> {
  const registry = records.registries.find(({ name }) => name === question.registry);
  const source = records.sources.find(({ name }) => name === question.source);
  if (question.registry !== undefined && registry === undefined) throw unknownRegistry(question.registry);
  if (question.source !== undefined && source === undefined) throw unknownSource(question.source);
  const all = registry?.sources ?? records.sources.map(({ name }) => name);
  const among = question.source === undefined ? all : [question.source];
  return {
    ...(registry === undefined ? {} : { registry: labelled(registry) }),
    ...(source === undefined ? {} : { source: labelled(source) }),
    ...(question.entry === undefined
      ? {}
      : { entry: { name: question.entry, copies: await copiesOf(records, question, among) } }),
  };
}

async function copiesOf(
  { readEntries }: AccessRecords,
  { kind, entry: name }: AccessQuestion,
  sources: readonly string[],
): Promise<EntryCopy[]> {
  const copies: EntryCopy[] = [];
  for (const source of sources) {
    const entries = await readEntries(source);
    for (const entry of entries) {
      if (entry.kind === kind && shownName(entry) === name) copies.push({ source, claims: entry.claims });
    }
  }
  if (copies.length === 0) throw new SkepError('registry/not-found');
  return copies;
}

function shownName({ namespace, name }: StoredEntry): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}

function labelled({ name, claims }: NamedRegistry | NamedSource): { name: string; claims: string } {
  return { name, claims };
}
