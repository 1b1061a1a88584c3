import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { AccessFacts, EntryCopy } from '../../../access/explain.ts';
import type { ClaimSet } from '../../../access/claim-set.ts';
import type { EntryIdentity, EntryKind, NamedRegistry, NamedSource } from '../../../store/rows.ts';
import type { Store } from '../../../store/store.ts';
import { unknownResource } from '../resource.ts';

/** What somebody wants to have explained; all absent asks about roles only. */
export interface AccessQuestion {
  readonly registry?: string | undefined;
  readonly source?: string | undefined;
  readonly entry?: string | undefined;
  readonly kind: EntryKind;
}

/** Where the facts come from: the store, or a configuration file that is not served yet. */
export interface AccessRecords {
  readonly registries: readonly NamedRegistry[];
  readonly sources: readonly NamedSource[];
  readonly readSomeEntries: Store['readSomeEntries'];
}

/** What the one who asks may know of. */
export interface Sight {
  readonly enters: (registry: ClaimSet) => boolean;
  readonly reads: (source: ClaimSet) => boolean;
  readonly sees: (entry: ClaimSet) => boolean;
}

const EVERYTHING: Sight = { enters: () => true, reads: () => true, sees: () => true };

/** Stands for the name of a source that the one who asks may not know; no source can have it. */
const HIDDEN_SOURCE = '(hidden)';

/**
 * Looks up what the question names. An entry is searched in the sources of the registry, in its source, or everywhere.
 * What is out of sight is not even looked up, so that the answer is the same whether or not it exists; of a registry with
 * a closed gate there is only the gate. Fails with `registry/unknown-registry`, `store/source-unknown` or
 * `registry/not-found`.
 */
export async function accessFacts(
  records: AccessRecords,
  question: AccessQuestion,
  sight: Sight = EVERYTHING,
): Promise<AccessFacts> {
  const registry = records.registries.find(({ name }) => name === question.registry);
  if (question.registry !== undefined && registry === undefined)
    throw unknownResource('registry', question.registry);
  if (registry !== undefined && !sight.enters(registry.claims)) return { registry: labelled(registry) };
  const source = records.sources.find(({ name, claims }) => name === question.source && sight.reads(claims));
  if (question.source !== undefined && source === undefined) throw unknownResource('source', question.source);
  const among = source === undefined ? (registry?.sources ?? reachable(records, sight)) : [source.name];
  return {
    ...(registry === undefined ? {} : { registry: labelled(registry) }),
    ...(source === undefined ? {} : { source: labelled(source) }),
    ...(question.entry === undefined
      ? {}
      : { entry: { name: question.entry, copies: await copiesOf(records, question, { among, sight }) } }),
  };
}

/** Sources that may be read, or whose entries are served by a registry that may be entered. */
function reachable({ registries, sources }: AccessRecords, sight: Sight): readonly string[] {
  const served = new Set(registries.flatMap((one) => (sight.enters(one.claims) ? one.sources : [])));
  const names = sources.flatMap(({ name, claims }) =>
    served.has(name) || sight.reads(claims) ? [name] : [],
  );
  return [...new Set(names)];
}

async function copiesOf(
  { readSomeEntries, sources }: AccessRecords,
  { kind, entry: name = '' }: AccessQuestion,
  { among, sight }: { readonly among: readonly string[]; readonly sight: Sight },
): Promise<EntryCopy[]> {
  const readable = new Set(sources.flatMap((one) => (sight.reads(one.claims) ? [one.name] : [])));
  const copies: EntryCopy[] = [];
  for (const source of among) {
    const [entry] = await readSomeEntries(source, [identityOf(kind, name)]);
    if (entry === undefined || !sight.sees(entry.claims)) continue;
    copies.push({ source: readable.has(source) ? source : HIDDEN_SOURCE, claims: entry.claims });
  }
  if (copies.length === 0) throw new SkepError('registry/not-found');
  return copies;
}

/** Of a skill or plugin the namespace stands before the last slash; a server's is part of its name. */
function identityOf(kind: EntryKind, shown: string): EntryIdentity {
  const slash = kind === 'server' ? -1 : shown.lastIndexOf('/');
  return { kind, namespace: shown.slice(0, Math.max(slash, 0)), name: shown.slice(slash + 1) };
}

function labelled({ name, claims }: NamedRegistry | NamedSource): { name: string; claims: string } {
  return { name, claims };
}
