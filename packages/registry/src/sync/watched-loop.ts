import { SkepError } from '@skep/core/errors/skep-error.ts';
import { utcTime, type Clock } from '@skep/core/time/clock.ts';
import type { Following, FollowOptions, WatchedSource, WatchedState } from '../sources/watched-source.ts';
import type { NewEntry, StoredSource, SyncStatus } from '../store/rows.ts';
import type { Lease } from '../store/writes/leases.ts';
import { contentHash, contentKey } from './content-hash.ts';
import type { IngestReport } from './ingest.ts';
import { withLease } from './lease.ts';
import { asError, type Attempt, type LoopOptions } from './source-loop.ts';
import { failureClass, syncFailed, syncSucceeded } from './status.ts';
import { watchedReader, type WatchedReader } from './watched-content.ts';

export interface WatchedLoopOptions extends LoopOptions {
  readonly watch: (source: StoredSource) => WatchedSource;
}

/** What changes together is written together: a deployment changes many objects within a moment. */
const GATHER_MS = 100;
/** A status is at most this old while nothing changes. */
const STATUS_MS = 60_000;
/** How soon to try to lead again, and to write again what could not be written. */
const TRY_AGAIN_MS = 2_000;

/**
 * Follows one source that tells what changes, while this process alone holds its lease, until it is closed. What is known of
 * the source at a moment is written as a whole, each entry with claims of its own (docs/behaviour/registry.md#kubernetes).
 */
export class WatchedLoop {
  readonly stored: StoredSource;
  /** It is elsewhere: nobody waits for it who has something to serve. */
  readonly isLocal = false;
  readonly #options: WatchedLoopOptions;
  readonly #closing = new AbortController();
  #turns: Promise<void> | undefined;
  #first = Promise.withResolvers<Attempt>();

  constructor(stored: StoredSource, options: WatchedLoopOptions) {
    this.stored = stored;
    this.#options = options;
  }

  /**
   * Begins to follow, if that has not begun. Resolves when every part of the source was read or has failed once, or when it
   * turns out that another replica follows it. Never rejects.
   */
  run(): Promise<Attempt> {
    this.#turns ??= this.#follow();
    return this.#first.promise;
  }

  /** Stops following and waits for what is being written. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(new SkepError('source/timeout', { message: 'the source is no longer followed' }));
    await this.#turns;
    this.#first.resolve({});
  }

  async #follow(): Promise<void> {
    const { store, clock, log } = this.#options;
    const { signal } = this.#closing;
    let said: string | undefined;
    while (!signal.aborted) {
      try {
        const held = await withLease(this.#lease, { store, clock, signal }, (lead) => this.#lead(lead));
        said = undefined;
        if (held === 'held-elsewhere')
          this.#settle({ status: await store.readStatus(this.stored.name), isElsewhere: true });
      } catch (error) {
        if (signal.aborted) return;
        const failure = asError(error);
        if (failure.message !== said)
          log.warn({ source: this.stored.name, err: failure }, 'source cannot be followed');
        said = failure.message;
        this.#settle({ failure });
      }
      await clock.sleep(TRY_AGAIN_MS, signal).catch(() => undefined);
    }
  }

  get #lease(): Lease {
    return { source: this.stored.name, owner: this.#options.owner };
  }

  /** Who asks again hears how it is by then. */
  #settle(attempt: Attempt): void {
    this.#first.resolve(attempt);
    this.#first = Promise.withResolvers();
    if (attempt.isElsewhere !== true && attempt.failure === undefined) this.#first.resolve(attempt);
  }

  async #lead(lead: AbortSignal): Promise<void> {
    const { store, limits, clock } = this.#options;
    const before = await store.readEntries(this.stored.name);
    const alarm = new Alarm(clock);
    const ring = (): void => alarm.ring();
    lead.addEventListener('abort', ring, { once: true });
    const following = await this.#open({ before, changed: ring });
    const read = watchedReader(limits);
    try {
      let written: Written | undefined;
      while (!lead.aborted) {
        await alarm.next(STATUS_MS);
        const start = clock.elapsed();
        if (!lead.aborted) written = await this.#write(following.state(), read, written);
        // Who writes much leaves as much time to others.
        await clock.sleep(Math.max(GATHER_MS, clock.elapsed() - start), lead).catch(() => undefined);
      }
      if (!this.#closing.signal.aborted) throw asError(lead.reason);
    } finally {
      lead.removeEventListener('abort', ring);
      await following.close();
    }
  }

  /** Begins to follow. Why that cannot be stands in the status; fails with it. */
  async #open(options: FollowOptions): Promise<Following> {
    const { store, watch, clock } = this.#options;
    const { name: source } = this.stored;
    try {
      return await watch(this.stored).follow(options);
    } catch (error) {
      const { message } = asError(error);
      const before = await store.readStatus(source);
      if (before !== undefined && !(before.phase === 'failed' && before.message === message)) {
        const status = syncFailed(before, { now: utcTime(clock), nextSync: null, message });
        await store.writeStatus(source, status, this.#lease);
      }
      throw error;
    }
  }

  /** Brings the store in line with the state; resolves with what stands there now. */
  async #write(
    state: WatchedState,
    read: WatchedReader,
    written: Written | undefined,
  ): Promise<Written | undefined> {
    const { store, clock, apply, limits } = this.#options;
    const { name: source } = this.stored;
    const before = await store.readStatus(source);
    // Deleted in the meantime; the scheduler is about to end this.
    if (before === undefined) return undefined;
    const { entries, report } = await read(state);
    const next: Written = {
      entries,
      about: JSON.stringify([report, state.faults, state.isTried, state.isWhole]),
      faults: state.faults,
      report,
      at: clock.elapsed(),
    };
    const isNew = written === undefined || !isSameList(written.entries, entries);
    const isOld = written === undefined || next.at - written.at >= STATUS_MS;
    if (!isNew && !isOld && written.about === next.about) return written;
    const key = contentKey(this.stored, limits());
    const hash = state.isWhole ? contentHash(key, 'watched') : before.contentHash;
    const status = statusAfter({ ...before, contentHash: hash, changed: isNew }, next, utcTime(clock));
    if (isNew) {
      const replacement = { source, entries, at: utcTime(clock), status, lease: this.#lease };
      await apply((await store.replaceEntries(replacement)).revision);
    } else await store.writeStatus(source, status, this.#lease);
    this.#tell(written, next, status);
    if (state.isTried) this.#settle({ status });
    return next;
  }

  /** What is new of it goes to the log, once. */
  #tell(before: Written | undefined, { faults, report, entries, at }: Written, status: SyncStatus): void {
    const { log, observe, clock } = this.#options;
    const { name: source, kind } = this.stored;
    const [fault] = faults;
    const outcome = fault === undefined ? 'success' : 'error';
    const failure = fault === undefined ? undefined : failureClass(undefined);
    observe({ source, kind, duration: Math.round(clock.elapsed() - at), outcome, failure, status });
    const known = new Set(before?.faults);
    for (const one of faults) {
      if (!known.has(one)) log.warn({ source, fault: one }, 'part of the source cannot be followed');
    }
    if (fault === undefined && known.size > 0) log.info({ source }, 'all of the source is followed again');
    if (before === undefined || !isSameList(before.entries, entries)) {
      log.info({ source, entries: status.counts, skipped: report.skippedTotal }, 'source followed');
    }
    const skipped = new Set(before?.report.skipped.map(({ name, reason }) => `${name} ${reason}`));
    for (const { name, reason } of report.skipped) {
      if (!skipped.has(`${name} ${reason}`)) log.warn({ source, name, reason }, 'entry left out');
    }
    const warned = new Set(before?.report.warnings);
    for (const warning of report.warnings) if (!warned.has(warning)) log.warn({ source }, warning);
  }
}

/** What the store was last brought to. */
interface Written {
  readonly entries: readonly NewEntry[];
  readonly report: IngestReport;
  readonly faults: readonly string[];
  /** All that the status says. */
  readonly about: string;
  /** By the clock of durations. */
  readonly at: number;
}

function isSameList(a: readonly NewEntry[], b: readonly NewEntry[]): boolean {
  return a.length === b.length && a.every((entry, index) => entry === b[index]);
}

function statusAfter(before: SyncStatus, { report, faults }: Written, now: string): SyncStatus {
  const [fault, ...others] = faults;
  const started = { ...before, lastAttempt: now };
  if (fault === undefined) {
    const { changed, contentHash: hash } = before;
    return syncSucceeded(started, {
      now,
      report,
      nextSync: null,
      changed,
      contentHash: hash,
      filterHash: null,
    });
  }
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const seen = { ...started, report: JSON.stringify(report), counts: report.entries };
  return syncFailed(seen, { now, nextSync: null, message: fault + more });
}

/** Rings for whoever waits, or for the next one who does. */
class Alarm {
  readonly #clock: Clock;
  #isDue = false;
  #wake: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#isDue = true;
    this.#wake();
  }

  /** Resolves when it has rung since the last time, or after so many milliseconds. */
  async next(longest: number): Promise<void> {
    if (!this.#isDue) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const { cancel } = this.#clock.after(longest, resolve);
      await promise;
      cancel();
    }
    this.#isDue = false;
  }
}
