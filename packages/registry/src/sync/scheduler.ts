import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isSynced, isWatched, type StoredSource } from '../store/rows.ts';
import { type Attempt, type Lanes, SourceLoop } from './source-loop.ts';
import { WatchedLoop, type WatchedLoopOptions } from './watched-loop.ts';

export type SchedulerOptions = Omit<WatchedLoopOptions, 'lanes'>;

type Loop = SourceLoop | WatchedLoop;

/** So many sources are read at once; each may need a thread and the memory of its catalogue. */
const READING = 4;
/** So many other machines are waited for at once. */
const FETCHING = 16;
/** Milliseconds that a start waits for what has never been loaded, however many sources there are. */
const LONGEST_START = 30_000;
/** How soon to see whether another replica has loaded a source that the store has nothing of. */
const ELSEWHERE_MS = 500;

/**
 * Synchronises every source at start, after a change, and then at its interval, until it is closed. Those that tell what
 * changes are followed instead.
 */
export class SyncScheduler {
  readonly #options: WatchedLoopOptions;
  readonly #loops = new Map<string, Loop>();
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(options: SchedulerOptions) {
    this.#options = {
      ...options,
      lanes: { fetching: lanesFor(FETCHING), reading: lanesFor(READING) },
    };
  }

  /**
   * Synchronises every source for the first time. Waits for files on this machine, for sources elsewhere that the store has
   * nothing of, whoever loads them, and for those that are followed, whose claims may be others than the store remembers;
   * for all together not longer than `LONGEST_START`. A file of the configuration that was
   * never loaded fails with `registry/no-first-sync`: that is a mistake in it. Another place that does not answer is a state
   * of the world, and what somebody made through the API must not keep the server from starting: both are logged, and tried
   * again.
   */
  async start(sources: readonly StoredSource[]): Promise<void> {
    const statuses = await this.#options.store.readStatuses();
    if (this.#closing.signal.aborted) return;
    const ended = new AbortController();
    const waits = sources.filter(isRead).map(async (stored) => {
      const loop = this.#add(stored);
      const first = loop.run('start');
      const hasData = (statuses.get(stored.name)?.contentHash ?? null) !== null;
      if (hasData && !loop.isLocal && !isWatched(stored.kind)) return;
      const { failure } = await this.#loaded(loop, first, ended.signal);
      const isMistake = loop.isLocal && stored.creationType === 'CONFIG';
      if (failure !== undefined && !hasData && isMistake) throw neverLoaded(stored.name, failure);
    });
    try {
      await Promise.race([Promise.all(waits), this.#pause(LONGEST_START, ended.signal)]);
    } finally {
      ended.abort();
    }
  }

  /** Brings the loops in line with the sources: new and changed ones are synchronised now, those that are gone end. */
  update(sources: readonly StoredSource[]): void {
    if (this.#closing.signal.aborted) return;
    const wanted = new Map(sources.filter(isRead).map((source) => [source.name, source]));
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

  /**
   * A source was made, replaced or deleted, and the commit is applied. A first synchronisation of it starts at once; for inline
   * data, which needs no waiting, the promise resolves when its entries are served.
   */
  async sourceChanged(name: string): Promise<void> {
    const loop = this.#loops.get(name);
    if (loop === undefined || loop.stored.interval !== null || isWatched(loop.stored.kind)) return;
    await this.#settled();
    await loop.run('changed');
  }

  /** Starts a synchronisation unless one runs, and resolves when it has been started. Fails with `store/source-unknown`. */
  async syncNow(name: string): Promise<void> {
    const loop = this.#loops.get(name);
    if (loop === undefined) {
      if ((await this.#options.store.readSource(name)) === undefined) {
        throw new SkepError('store/source-unknown', { message: `source not found: ${name}` });
      }
      return;
    }
    // As in update: one that ends may be about to write.
    void this.#settled().then(() => loop.run('asked'));
  }

  /** Stops timers, cancels what runs and waits for it. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const loop of this.#loops.values()) this.#end(loop);
    this.#loops.clear();
    await this.#settled();
  }

  #add(stored: StoredSource): Loop {
    const Made = isWatched(stored.kind) ? WatchedLoop : SourceLoop;
    const loop = new Made(stored, this.#options);
    this.#loops.set(stored.name, loop);
    return loop;
  }

  #end(loop: Loop): void {
    const ending = loop.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async #settled(): Promise<void> {
    await Promise.allSettled(this.#ending);
  }

  /** The first synchronisation that has ended, of this process or of another: until then there may be nothing to serve. */
  async #loaded(loop: Loop, first: Promise<Attempt>, ended: AbortSignal): Promise<Attempt> {
    for (let attempt = await first; ; attempt = await loop.run('changed')) {
      const isStored = (attempt.status?.contentHash ?? null) !== null;
      const isOver = attempt.isElsewhere !== true && !isBusy(attempt.failure);
      if (isOver || isStored || ended.aborted) return attempt;
      await this.#pause(ELSEWHERE_MS, ended);
    }
  }

  /** Ends with the scheduler too. */
  async #pause(milliseconds: number, ended: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const either = AbortSignal.any([ended, this.#closing.signal]);
    const end = (): void => resolve();
    const { cancel } = this.#options.clock.after(milliseconds, end);
    either.addEventListener('abort', end);
    if (!either.aborted) await promise;
    cancel();
  }
}

/** The store had no time for the synchronisation: nobody knows what it would have found. */
const isBusy = (failure: Error | undefined): boolean =>
  failure instanceof SkepError && BUSY.has(failure.code);
const BUSY: ReadonlySet<string> = new Set(['store/locked', 'store/conflict', 'store/unavailable']);

/** Orphaned sources are served as they are. */
function isRead({ kind, orphaned }: StoredSource): boolean {
  return (isSynced(kind) || isWatched(kind)) && !orphaned;
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

/** Runs at most so many things at once; the others wait in the order they came. */
function lanesFor(count: number): Lanes {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
