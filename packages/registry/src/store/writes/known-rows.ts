import type { Revision } from '../changes.ts';
import type { EntryWork } from './managed-entries.ts';
import type { ManagedRows } from './managed-rows.ts';

/**
 * What the last transaction on managed entries found, as long as this process made every commit since: enough to judge an
 * entry that is new without reading. The commit proves that it is still so, because every change takes a revision.
 */
export class KnownRows {
  #rows: ManagedRows | undefined;

  /** Undefined where something has to be read; `newest` is a revision that there is. */
  about(works: readonly EntryWork<unknown>[], newest: Revision): ManagedRows | undefined {
    const rows = this.#rows;
    if (rows === undefined || rows.revision < newest) return undefined;
    const knows = (name: string | undefined): boolean =>
      name === undefined || rows.registries.some((registry) => registry.name === name);
    return works.every(({ seemsNew, address }) => seemsNew === true && knows(address.registry))
      ? rows
      : undefined;
  }

  /** A transaction that began with these rows has changed entries alone and left this revision. */
  left(
    before: ManagedRows,
    { revision, changed }: { readonly revision: Revision; readonly changed: boolean },
  ): void {
    const next = changed ? before.revision + 1 : before.revision;
    const known = this.#rows?.revision === before.revision ? this.#rows.registries : [];
    const read = new Set(before.registries.map(({ name }) => name));
    const registries = [...before.registries, ...known.filter(({ name }) => !read.has(name))];
    // In between somebody else has committed, who knows what.
    this.#rows = revision === next ? { revision, source: before.source, entries: [], registries } : undefined;
  }
}
