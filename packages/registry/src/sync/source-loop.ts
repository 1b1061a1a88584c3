import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import { utcTime, type Clock } from '@skep/core/time/clock.ts';
import { decodeSource } from '../sources/open-source.ts';
import type { Source } from '../sources/source.ts';
import type { SourceKind, StoredSource, SyncStatus } from '../store/rows.ts';
import type { Lease } from '../store/writes/leases.ts';
import { contentKey, knownBytes } from './content-hash.ts';
import { LEASE_MS, withLease } from './lease.ts';
import { failureClass, reportOf, syncFailed, syncStarted, type FailureClass } from './status.ts';
import { syncSource, type SyncParts } from './sync-source.ts';
import { syncLimit, waitFor } from './timing.ts';

/** What happened to a synchronisation, for metrics and audit. */
export interface SyncEvent {
  readonly source: string;
  readonly kind: SourceKind;
  /** Milliseconds. */
  readonly duration: number;
  readonly outcome: 'success' | 'error';
  readonly failure?: FailureClass;
  readonly status: SyncStatus;
}

export interface LoopOptions {
  readonly parts: SyncParts;
  /** `before` is what the last synchronisation left in the store. */
  readonly open: (source: StoredSource, before: SyncStatus) => Source;
  readonly clock: Clock;
  /** At least 0, below 1. */
  readonly random: () => number;
  readonly log: Log;
  /** Unique to this process. */
  readonly owner: string;
  readonly lanes: {
    /** Waiting for other machines costs little, and one that never answers must not hold up what is here. */
    readonly fetching: Lanes;
    /** Reading needs a thread and the memory of a catalogue. */
    readonly reading: Lanes;
  };
  readonly observe: (event: SyncEvent) => void;
}

/** How soon to check again whether the other replica has finished, or its lease has run out. */
const CHECK_AGAIN_MS = LEASE_MS / 2;

/** Why a source is synchronised: a plain turn is left out when another replica has been there in the meantime. */
export type Occasion = 'start' | 'asked' | 'changed' | 'turn';

/** `status` is undefined when the source is gone or the store did not answer. */
export interface Attempt {
  readonly status?: SyncStatus;
  readonly failure?: Error;
  /** Another replica is at it, or died at it. */
  readonly isElsewhere?: true;
}

/** Synchronises one source at its interval until it is closed; never two runs at once. */
export class SourceLoop {
  readonly stored: StoredSource;
  readonly #options: LoopOptions;
  readonly #closing = new AbortController();
  #source: Source | undefined;
  #running: Promise<Attempt> | undefined;
  #again: Promise<Attempt> | undefined;
  #cancelTimer: () => void = () => undefined;

  constructor(stored: StoredSource, options: LoopOptions) {
    this.stored = stored;
    this.#options = options;
  }

  /** Whether the source is read in no time, and there when the machine is. */
  get isLocal(): boolean {
    return decodeSource(this.stored).isLocal ?? false;
  }

  /**
   * Synchronises now, or joins the run that is going on. Who asks gets one more run after that one, which may have read the place
   * before it changed. Never rejects.
   */
  run(occasion: Occasion): Promise<Attempt> {
    this.#cancelTimer();
    if (this.#running !== undefined && occasion === 'asked') {
      this.#again ??= this.#running.then(() => {
        this.#again = undefined;
        return this.run('asked');
      });
      return this.#again;
    }
    const { fetching, reading } = this.#options.lanes;
    this.#running ??= (this.isLocal ? reading : fetching)
      .run(() => this.#attempt(occasion))
      .then((attempt) => {
        this.#running = undefined;
        this.#schedule(attempt, occasion);
        return attempt;
      });
    return this.#running;
  }

  /** Cancels what runs and waits for it. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(new SkepError('source/timeout', { message: 'the synchronisation was stopped' }));
    this.#cancelTimer();
    await this.#running;
    await this.#again;
  }

  async #attempt(occasion: Occasion): Promise<Attempt> {
    const { parts, clock, log } = this.#options;
    const { name } = this.stored;
    if (this.#closing.signal.aborted) return {};
    try {
      const result = await withLease(
        this.#lease,
        { store: parts.store, clock, signal: this.#closing.signal },
        (signal) => this.#holding(occasion, signal),
      );
      return result === 'held-elsewhere' ? this.#elsewhere() : result;
    } catch (error) {
      const failure = asError(error);
      if (!this.#closing.signal.aborted)
        log.warn({ source: name, err: failure }, 'synchronisation impossible');
      return { failure, ...takenOver(failure) };
    }
  }

  async #elsewhere(): Promise<Attempt> {
    const status = await this.#options.parts.store.readStatus(this.stored.name);
    return { ...(status === undefined ? {} : { status }), isElsewhere: true };
  }

  get #lease(): Lease {
    return { source: this.stored.name, owner: this.#options.owner };
  }

  async #holding(occasion: Occasion, signal: AbortSignal): Promise<Attempt> {
    const { parts, clock, observe } = this.#options;
    const { name, interval } = this.stored;
    const limit = syncLimit(interval);
    const before = await parts.store.readStatus(name);
    if (before === undefined || this.#isDone(occasion, before))
      return before === undefined ? {} : { status: before };
    // Whoever asks wants what is there now, whatever this process remembers of the place.
    if (occasion === 'asked') this.#source = undefined;
    const startedAt = clock.now();
    const started = syncStarted(before, utcTime(clock));
    await parts.store.writeStatus(name, started, this.#lease);
    const late = new AbortController();
    const { cancel } = clock.after(limit, () => late.abort(tooLate(name, limit)));
    const either = AbortSignal.any([signal, late.signal]);
    const attempt = await this.#sync(before, started, either).finally(cancel);
    if (attempt.status !== undefined && !this.#closing.signal.aborted) {
      observe({
        source: name,
        kind: this.stored.kind,
        duration: clock.now() - startedAt,
        outcome: attempt.failure === undefined ? 'success' : 'error',
        ...(attempt.failure === undefined ? {} : { failure: failureClass(attempt.failure) }),
        status: attempt.status,
      });
    }
    return attempt;
  }

  async #sync(before: SyncStatus, started: SyncStatus, signal: AbortSignal): Promise<Attempt> {
    const { parts, open, log } = this.#options;
    const { stored } = this;
    try {
      this.#source ??= open(stored, before);
      const task = {
        stored,
        source: this.#source,
        lease: this.#lease,
        before: started,
        nextSync: () => this.#next(0),
        inTurn: <T>(read: () => Promise<T>): Promise<T> =>
          this.isLocal ? read() : this.#options.lanes.reading.run(read),
      };
      const status = await syncSource(parts, task, signal);
      logSuccess(log, stored.name, status);
      return { status };
    } catch (error) {
      const failure = asError(signal.aborted && !(error instanceof SkepError) ? signal.reason : error);
      return this.#closing.signal.aborted ? this.#stopped(before) : this.#failed(started, failure);
    }
  }

  /** What was served before goes on being served. */
  async #failed(started: SyncStatus, failure: Error): Promise<Attempt> {
    const { parts, clock, log } = this.#options;
    const { name } = this.stored;
    if (takenOver(failure).isElsewhere === true) return { failure, isElsewhere: true };
    const now = utcTime(clock);
    const nextSync = this.#next(started.attemptCount + 1);
    const status = syncFailed(started, { now, nextSync, message: failure.message });
    await parts.store.writeStatus(name, status, this.#lease);
    const attempts = status.attemptCount;
    log.warn(
      { source: name, err: failure, error_type: failureClass(failure), attempts },
      'synchronisation failed',
    );
    return { status, failure };
  }

  /** A cancelled run is not a failure; the earlier status is restored. */
  async #stopped(before: SyncStatus): Promise<Attempt> {
    await this.#options.parts.store.writeStatus(this.stored.name, before, this.#lease);
    return { status: before };
  }

  /** Whether another replica has done what this turn is for. */
  #isDone(occasion: Occasion, { phase, nextSync, contentHash }: SyncStatus): boolean {
    // The lease is ours, so whoever began died at it.
    if (phase === 'syncing') return false;
    if (occasion === 'start' || occasion === 'asked') return false;
    const { parts, clock } = this.#options;
    const key = contentKey(this.stored, parts.limits());
    if (phase === 'complete' && knownBytes(key, contentHash) === undefined) return false;
    if (occasion === 'changed') return phase === 'complete';
    return nextSync !== null && Date.parse(nextSync) > clock.now();
  }

  #next(failures: number): string | null {
    const { interval } = this.stored;
    if (interval === null) return null;
    const { clock, random } = this.#options;
    return new Date(clock.now() + waitFor(interval, failures, random())).toISOString();
  }

  #schedule({ status, isElsewhere }: Attempt, occasion: Occasion): void {
    const turn = this.#wait(status);
    const wait = isElsewhere === true ? Math.min(turn ?? CHECK_AGAIN_MS, CHECK_AGAIN_MS) : turn;
    if (wait === undefined || this.#closing.signal.aborted) return;
    // Who asks wants to see what is there now, which whoever was at it then may not have seen.
    const next = isElsewhere === true && occasion === 'asked' ? 'asked' : 'turn';
    this.#cancelTimer = this.#options.clock.after(wait, () => void this.run(next)).cancel;
  }

  /** Undefined for a source that is read once. */
  #wait(status: SyncStatus | undefined): number | undefined {
    const { interval } = this.stored;
    if (interval === null) return undefined;
    const { clock, random } = this.#options;
    const due = Date.parse(status?.nextSync ?? '') - clock.now();
    return due > 0 && status?.phase !== 'syncing' ? due : waitFor(interval, 0, random());
  }
}

/** Who has lost the lease tries again soon, whatever the interval: whoever took it may have died at it. */
function takenOver(failure: Error): { readonly isElsewhere?: true } {
  return failure instanceof SkepError && failure.code === 'store/lease-lost' ? { isElsewhere: true } : {};
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new SkepError('internal/bug', { cause: error });
}

function tooLate(name: string, limit: number): SkepError {
  const message = `source "${name}" was not synchronised within ${limit / 1000} s`;
  return new SkepError('source/timeout', { message });
}

function logSuccess(log: Log, source: string, status: SyncStatus): void {
  const report = reportOf(status);
  const { changed, counts } = status;
  log.info({ source, changed, entries: counts, skipped: report?.skippedTotal ?? 0 }, 'source synchronised');
  if (!changed || report === undefined) return;
  for (const { name, version, reason } of report.skipped) {
    log.warn({ source, name, version, reason }, 'entry left out');
  }
  for (const warning of report.warnings) log.warn({ source }, warning);
}

/** Runs at most so many things at once; the others wait in the order they came. */
export class Lanes {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
