import { setImmediate } from 'node:timers/promises';
import type { Log } from '@skep/core/log/log.ts';
import type { Changes, Revision, WrittenEntries, WrittenSource } from '../store/changes.ts';
import type { EntryIdentity, StoredEntry, StoredSource } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { EntrySerialiser, changedKeys, patchBlock, type SourceBlock, type ChangedKeys } from './block.ts';
import type { ReadEngine } from './read-engine.ts';

export interface FollowerOptions {
  readonly store: Store;
  readonly engine: ReadEngine;
  readonly log: Log;
  /** Called with all sources after commits that may have changed some of them, when the engine serves the new state. */
  readonly onSources: (sources: readonly StoredSource[]) => void;
}

/** What a commit will leave. */
interface Prepared {
  readonly written: WrittenEntries;
  /** See ReadEngine.prepare. */
  readonly serve: () => boolean;
}

/**
 * Keeps the read engine in step with the store: what this process commits, and what other replicas do. Only what a commit
 * changed is read again, and many commits that come together make one snapshot.
 */
export class StoreFollower {
  readonly #options: FollowerOptions;
  /** What commits of this process left that come next, or nearly: what is known need not be read. */
  readonly #known = new Map<Revision, WrittenEntries | WrittenSource>();
  #prepared: Prepared | undefined;
  #revision: Revision = 0;
  /** What was read last may hold commits up to this one already. */
  #readAt: Revision = 0;
  #step: Promise<void> | undefined;
  #stop: () => void = () => undefined;
  #isClosed = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  /** Reads everything, then follows. */
  async start(): Promise<readonly StoredSource[]> {
    const { store } = this.#options;
    const changes = await store.changesSince(this.#revision);
    const sources = await this.#apply({ kind: 'everything', revision: changes.revision });
    this.#stop = store.onChange(
      (revision, written) => {
        if (written !== undefined && revision > this.#revision) this.#known.set(revision, written);
        this.#hear(revision);
      },
      (written) => this.#prepare(written),
    );
    return sources;
  }

  /**
   * Resolves when reads of this process see the commit of that revision. Fails as the store does; the engine then
   * still serves a state that was committed, and goes on with the next notice.
   */
  async reach(revision: Revision): Promise<void> {
    while (this.#revision < revision && !this.#isClosed) await this.#next();
  }

  /** Resolves when reads of this process see everything that was committed until now, by whomever. */
  async catchUp(): Promise<void> {
    const { revision } = await this.#options.store.changesSince(this.#revision);
    await this.reach(revision);
  }

  /** Stops following and waits for what is being read. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    await this.#step?.catch(() => undefined);
  }

  #hear(revision: Revision): void {
    this.reach(revision).catch((error: unknown) => {
      // The store repeats its notice, so this is tried again.
      this.#options.log.warn({ err: error, revision }, 'cannot read what changed in the store');
    });
  }

  #next(): Promise<void> {
    this.#step ??= this.#follow().finally(() => {
      this.#step = undefined;
    });
    return this.#step;
  }

  async #follow(): Promise<void> {
    const known = this.#nextKnown(this.#revision);
    if (known !== undefined) {
      this.#patch(known);
      return;
    }
    const changes = await this.#options.store.changesSince(this.#revision);
    const sources = await this.#apply(changes);
    if (changes.kind === 'everything' || changes.sources.length > 0) this.#options.onSources(sources);
  }

  /**
   * Which single entries the commit after that one left, if it is of this process and their source is served
   * already; unless what is served may be newer, which would then be put back.
   */
  #nextKnown(revision: Revision): WrittenEntries | undefined {
    const known = revision < this.#readAt ? undefined : this.#known.get(revision + 1);
    if (known === undefined || known.changed === 'all') return undefined;
    return this.#options.engine.blocks().has(known.source) ? known : undefined;
  }

  /** One snapshot of the commits that come next, as far as what they left is known. */
  #patch(first: WrittenEntries): void {
    const { engine } = this.#options;
    if (this.#servePrepared(first)) return this.#reached(this.#revision + 1);
    const blocks = new Map<string, SourceBlock>();
    const changed = new Map<string, EntryIdentity[]>();
    let revision = this.#revision;
    for (let next: WrittenEntries | undefined = first; next !== undefined; next = this.#nextKnown(revision)) {
      const { source } = next;
      const block = blocks.get(source) ?? engine.blocks().get(source);
      if (block === undefined) break;
      blocks.set(source, patchBlock(block, next.changed, next.entries));
      changed.set(source, [...(changed.get(source) ?? []), ...next.changed]);
      revision += 1;
    }
    engine.update({
      blocks: [...blocks.values()],
      changed: new Map([...changed].map(([source, entries]) => [source, changedKeys(entries)])),
    });
    // Not before: what fails is tried again by the next step.
    this.#reached(revision);
  }

  /** What is most likely served after the commit that is under way. */
  #prepare(written: WrittenEntries): void {
    const { engine } = this.#options;
    const { source, changed, entries } = written;
    const before = engine.blocks().get(source);
    // What another commit left comes first.
    if (before === undefined || this.#prepared !== undefined) return;
    const blocks = [patchBlock(before, changed, entries)];
    const serve = engine.prepare({ blocks, changed: new Map([[source, changedKeys(changed)]]) });
    this.#prepared = { written, serve };
  }

  /** Whether that is what was prepared last, and nothing else has come before it. */
  #servePrepared(written: WrittenEntries): boolean {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    return prepared?.written === written && prepared.serve();
  }

  #reached(revision: Revision): void {
    this.#revision = Math.max(this.#revision, revision);
    for (const known of this.#known.keys()) if (known <= this.#revision) this.#known.delete(known);
  }

  async #apply(changes: Changes): Promise<readonly StoredSource[]> {
    const { store, engine } = this.#options;
    const isAll = changes.kind === 'everything';
    const needsSources = isAll || changes.sources.length > 0;
    const sources = needsSources ? await store.listSources() : [];
    const existing = new Set(sources.map(({ name }) => name));
    const changed = isAll ? [...existing] : changes.sources;
    const blocks: SourceBlock[] = [];
    for (const source of changed) {
      if (existing.has(source)) blocks.push(await this.#blockOf(source, changes.revision));
    }
    const keys = new Map<string, ChangedKeys>();
    for (const [source, some] of Map.groupBy(isAll ? [] : changes.entries, (entry) => entry.source)) {
      const block = engine.blocks().get(source);
      if (block === undefined) blocks.push(await this.#read(source));
      else {
        blocks.push(patchBlock(block, some, await store.readSomeEntries(source, some)));
        keys.set(source, changedKeys(some));
      }
    }
    const registries = isAll || changes.registries.length > 0 ? await store.listRegistries() : undefined;
    this.#readAt = (await store.changesSince(changes.revision)).revision;
    const gone = changed.filter((source) => !existing.has(source));
    engine.update({ blocks, changed: keys, gone, ...(registries === undefined ? {} : { registries }) });
    // It holds what was served before, and is of no use any more.
    this.#prepared = undefined;
    this.#reached(changes.revision);
    return sources;
  }

  async #blockOf(source: string, revision: Revision): Promise<SourceBlock> {
    const known = this.#known.get(revision);
    const isKnown = known?.changed === 'all' && known.source === source;
    return isKnown ? blockInTurns(source, known.entries) : this.#read(source);
  }

  /** Serialises each entry as it comes: the rows of a large source take more memory than what is made of them. */
  async #read(source: string): Promise<SourceBlock> {
    const serialiser = new EntrySerialiser();
    await this.#options.store.visitEntries(source, (entry) => serialiser.add(entry));
    return serialiser.block(source);
  }
}

/** A few milliseconds of work. */
const VERSIONS_AT_ONCE = 500;

/** Between two parts of the work other requests have their turn. */
async function blockInTurns(source: string, entries: readonly StoredEntry[]): Promise<SourceBlock> {
  const serialiser = new EntrySerialiser();
  let done = 0;
  for (const entry of entries) {
    const steps = serialiser.steps(entry);
    while (steps.next().done !== true) {
      done += 1;
      if (done % VERSIONS_AT_ONCE === 0) await setImmediate();
    }
  }
  return serialiser.block(source);
}
