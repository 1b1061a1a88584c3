import { SkepError } from '@skep/core/errors/skep-error.ts';
import { SYNCED_KINDS, type StoredSource, type SyncStatus } from '../store/rows.ts';
import { Lanes } from './lanes.ts';
import { type Attempt, type LoopOptions, SourceLoop } from './source-loop.ts';

export type SchedulerOptions = Omit<LoopOptions, 'lanes'>;

/** Synchronisation, as far as others steer it. */
export interface SyncControl {
  /**
   * A source was made, replaced or deleted, and the commit is applied. A first look at it starts at once; for inline
   * data, which needs no waiting, the promise resolves when its entries are served.
   */
  sourceChanged(name: string): Promise<void>;
  /** Starts a synchronisation unless one runs, and resolves when it has been started. Fails with `store/source-unknown`. */
  syncNow(name: string): Promise<void>;
  /** As all replicas see it; undefined for a source that does not exist. */
  status(name: string): Promise<SyncStatus | undefined>;
}

/** So many sources are read at once; each may need a thread and the memory of its catalogue. */
const LANES = 4;
/** Milliseconds that a start waits for sources elsewhere that have never been loaded. */
const LONGEST_START = 30_000;

/** Looks at every source at start, after a change, and then at its interval, until it is closed. */
export class SyncScheduler implements SyncControl {
  readonly #options: LoopOptions;
  readonly #loops = new Map<string, SourceLoop>();
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: SchedulerOptions) {
    this.#options = { ...options, lanes: new Lanes(LANES) };
  }

  /**
   * Looks at every source for the first time. Waits for files on this machine, and for a while for sources elsewhere that
   * the store has nothing of. A file of the configuration that was never loaded fails with `registry/no-first-sync`: that
   * is a mistake in it. Another place that does not answer is a state of the world, and what somebody made through the API
   * must not keep the server from starting: both are logged, and tried again.
   */
  async start(sources: readonly StoredSource[]): Promise<void> {
    const statuses = await this.#options.parts.store.readStatuses();
    if (this.#isClosed) return;
    const waits = sources.filter(isSynced).map(async (stored) => {
      const first = this.#add(stored).run('start');
      const hasData = (statuses.get(stored.name)?.contentHash ?? null) !== null;
      if (isLocal(stored)) {
        const { failure } = await first;
        const isConfigured = stored.creationType === 'CONFIG';
        if (failure !== undefined && !hasData && isConfigured) throw neverLoaded(stored.name, failure);
      } else if (!hasData) {
        await this.#atMost(LONGEST_START, first);
      }
    });
    await Promise.all(waits);
  }

  /** Brings the loops in line with the sources: new and changed ones are looked at now, those that are gone end. */
  update(sources: readonly StoredSource[]): void {
    if (this.#isClosed) return;
    const wanted = new Map(sources.filter(isSynced).map((source) => [source.name, source]));
    for (const [name, loop] of this.#loops) {
      const next = wanted.get(name);
      if (next !== undefined && settingsOf(next) === settingsOf(loop.stored)) continue;
      this.#loops.delete(name);
      this.#end(loop);
    }
    for (const [name, stored] of wanted) {
      if (this.#loops.has(name)) continue;
      const loop = this.#add(stored);
      // The loop that ends holds the lease of the same process until it has ended.
      void this.#settled().then(() => loop.run('changed'));
    }
  }

  async sourceChanged(name: string): Promise<void> {
    const loop = this.#loops.get(name);
    if (loop === undefined || loop.stored.interval !== null) return;
    await this.#settled();
    await loop.run('changed');
  }

  async syncNow(name: string): Promise<void> {
    const loop = this.#loops.get(name);
    if (loop === undefined) {
      if ((await this.#options.parts.store.readSource(name)) === undefined) {
        throw new SkepError('store/source-unknown', { message: `source not found: ${name}` });
      }
      return;
    }
    // As in update: one that ends may be about to write.
    void this.#settled().then(() => loop.run('asked'));
  }

  status(name: string): Promise<SyncStatus | undefined> {
    return this.#options.parts.store.readStatus(name);
  }

  /** Stops timers, cancels what runs and waits for it. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const loop of this.#loops.values()) this.#end(loop);
    this.#loops.clear();
    await this.#settled();
  }

  #add(stored: StoredSource): SourceLoop {
    const loop = new SourceLoop(stored, this.#options);
    this.#loops.set(stored.name, loop);
    return loop;
  }

  #end(loop: SourceLoop): void {
    const ending = loop.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async #settled(): Promise<void> {
    await Promise.allSettled(this.#ending);
  }

  async #atMost(milliseconds: number, attempt: Promise<Attempt>): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(milliseconds, resolve);
    await Promise.race([attempt, late]);
    cancel();
  }
}

/** Orphaned sources are served as they are. */
function isSynced({ kind, orphaned }: StoredSource): boolean {
  return SYNCED_KINDS.includes(kind) && !orphaned;
}

/** Read in no time, and there when the machine is. */
function isLocal({ kind, config }: StoredSource): boolean {
  if (kind !== 'file') return false;
  const block: unknown = JSON.parse(config);
  return typeof block === 'object' && block !== null && !('url' in block);
}

/** What decides about how a source is read. */
function settingsOf({ kind, config, format, filter, interval, claims, creationType }: StoredSource): string {
  return JSON.stringify([kind, config, format, filter, interval, claims, creationType]);
}

function neverLoaded(name: string, failure: Error): SkepError {
  return new SkepError('registry/no-first-sync', {
    message: `source "${name}": ${failure.message}`,
    ...(failure instanceof SkepError ? { hint: failure.hint } : {}),
    cause: failure,
  });
}
