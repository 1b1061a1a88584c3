import type { EntryIdentity } from '../store/rows.ts';
import type { SourceBlock, ChangedKeys } from './block.ts';
import { entryKey } from './entry-key.ts';
import {
  buildSnapshot,
  ClaimClasses,
  patchSnapshot,
  type RegistryDefinition,
  type Snapshot,
} from './snapshot.ts';

/** What a commit changed. */
export interface EngineChange {
  /** All of them, where any has changed. */
  readonly registries?: readonly RegistryDefinition[];
  /** Of the sources that changed. */
  readonly blocks?: readonly SourceBlock[];
  /** What is different in a block, by source, where that is known: it spares looking at the rest. */
  readonly changed?: ReadonlyMap<string, ChangedKeys>;
  /** Names of sources that do not exist any more. */
  readonly gone?: readonly string[];
}

/** Holds the current snapshot. A write is committed to the store first and applied here afterwards. */
export class ReadEngine {
  #registries: readonly RegistryDefinition[];
  #blocks: ReadonlyMap<string, SourceBlock> = new Map();
  #classes = new ClaimClasses();
  #snapshot: Snapshot;

  constructor(registries: readonly RegistryDefinition[]) {
    this.#registries = registries;
    this.#snapshot = this.#built();
  }

  /** The state to answer one request from; keep it for the whole request. */
  current(): Snapshot {
    return this.#snapshot;
  }

  /** What each source serves, by name; those not loaded yet are missing. */
  blocks(): ReadonlyMap<string, SourceBlock> {
    return this.#blocks;
  }

  /** Whether any source serves an entry of this identity. */
  serves(identity: EntryIdentity): boolean {
    const key = entryKey(identity);
    return this.#blocks.values().some(({ entries }) => entries[identity.kind].find(key) !== undefined);
  }

  /** Makes one new snapshot of all of it. Requests that already hold the old one finish on it. */
  update(change: EngineChange): void {
    this.prepare(change)();
  }

  /**
   * Does of an update what nobody notices. The result does the rest at once, and returns whether it could: not where the
   * engine has been updated meanwhile.
   */
  prepare({ registries, blocks = [], gone = [], changed = new Map() }: EngineChange): () => boolean {
    const before = this.#snapshot;
    const isLess = gone.some((source) => this.#blocks.has(source));
    if (registries === undefined && blocks.length === 0 && !isLess) return () => this.#snapshot === before;
    const next = new Map(this.#blocks);
    for (const block of blocks) next.set(block.source, block);
    for (const source of gone) next.delete(source);
    const isPatch =
      registries === undefined &&
      !isLess &&
      blocks.every(({ source }) => changed.has(source) && this.#blocks.has(source));
    const definitions = registries ?? this.#registries;
    const patch = { definitions, blocks: next, changed, classes: this.#classes };
    const patched = isPatch ? patchSnapshot(before, patch) : undefined;
    return () => {
      if (this.#snapshot !== before) return false;
      this.#registries = definitions;
      this.#blocks = next;
      this.#snapshot = patched?.() ?? this.#built();
      return true;
    };
  }

  #built(): Snapshot {
    this.#classes = new ClaimClasses();
    return buildSnapshot(this.#registries, this.#blocks, this.#classes);
  }
}
