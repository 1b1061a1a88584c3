import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import { utcTime, type Clock } from '@skep/core/time/clock.ts';
import type { Limits } from '../shape/limits.ts';
import { decodeSource } from '../sources/open-source.ts';
import type { Source } from '../sources/source.ts';
import type { Revision } from '../store/changes.ts';
import type { SourceKind, StoredSource, SyncStatus } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Lease } from '../store/writes/leases.ts';
import { contentKey, knownBytes, contentHash } from './content-hash.ts';
import type { Ingest } from './ingest.ts';
import { LEASE_MS, withLease } from './lease.ts';
import {
  failureClass,
  reportOf,
  syncFailed,
  syncStarted,
  syncLimit,
  waitFor,
  syncSucceeded,
  type FailureClass,
} from './status.ts';

/** What happened to a synchronisation, for metrics and audit. */
export interface SyncEvent {
  readonly source: string;
  readonly kind: SourceKind;
  /** Milliseconds. */
  readonly duration: number;
  readonly outcome: 'success' | 'error';
  readonly failure?: FailureClass | undefined;
  readonly status: SyncStatus;
}

/** Runs work when it is its turn. */
export type Lanes = <T>(work: () => Promise<T>) => Promise<T>;

export interface LoopOptions {
  readonly store: Store;
  readonly ingest: Ingest;
  /** Makes reads of this process see the commit. */
  readonly apply: (revision: Revision) => Promise<void>;
  /** Those in force now. */
  readonly limits: () => Limits;
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
  readonly status?: SyncStatus | undefined;
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
    const run = this.isLocal ? reading : fetching;
    this.#running ??= run(() => this.#attempt(occasion)).then((attempt) => {
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
    const { store, clock, log } = this.#options;
    const { name: source } = this.stored;
    const { signal } = this.#closing;
    if (signal.aborted) return {};
    try {
      const holding = (held: AbortSignal): Promise<Attempt> => this.#holding(occasion, held);
      const attempt = await withLease(this.#lease, { store, clock, signal }, holding);
      if (attempt !== 'held-elsewhere') return attempt;
      return { status: await store.readStatus(source), isElsewhere: true };
    } catch (error) {
      const failure = asError(error);
      if (!signal.aborted) log.warn({ source, err: failure }, 'synchronisation impossible');
      return { failure, ...takenOver(failure) };
    }
  }

  get #lease(): Lease {
    return { source: this.stored.name, owner: this.#options.owner };
  }

  async #holding(occasion: Occasion, signal: AbortSignal): Promise<Attempt> {
    const { store, clock, observe } = this.#options;
    const { name: source, kind, interval } = this.stored;
    const limit = syncLimit(interval);
    const before = await store.readStatus(source);
    if (before === undefined || this.#isDone(occasion, before)) return { status: before };
    // Whoever asks wants what is there now, whatever this process remembers of the place.
    if (occasion === 'asked') this.#source = undefined;
    const startedAt = clock.now();
    const started = syncStarted(before, utcTime(clock));
    await store.writeStatus(source, started, this.#lease);
    const late = new AbortController();
    const { cancel } = clock.after(limit, () => late.abort(tooLate(source, limit)));
    const either = AbortSignal.any([signal, late.signal]);
    const attempt = await this.#sync(before, started, either).finally(cancel);
    const { failure, status } = attempt;
    if (status !== undefined && !this.#closing.signal.aborted) {
      const duration = clock.now() - startedAt;
      const outcome = failure === undefined ? 'success' : 'error';
      observe({ source, kind, duration, outcome, failure: failure && failureClass(failure), status });
    }
    return attempt;
  }

  async #sync(before: SyncStatus, started: SyncStatus, signal: AbortSignal): Promise<Attempt> {
    const { open, log } = this.#options;
    const { stored } = this;
    try {
      this.#source ??= open(stored, before);
      const status = await this.#fetch(this.#source, started, signal);
      logSuccess(log, stored.name, status);
      return { status };
    } catch (error) {
      const failure = asError(signal.aborted && !(error instanceof SkepError) ? signal.reason : error);
      return this.#closing.signal.aborted ? this.#stopped(before) : this.#failed(started, failure);
    }
  }

  /**
   * Fetch, compare, read, store, then serve (docs/behaviour/registry.md#synchronisation); returns the status that the
   * store has now. Until the store has committed, callers see the data before; a failure at any step leaves it as it was.
   * Content that is known already causes no write but that of the status.
   */
  async #fetch(source: Source, started: SyncStatus, signal: AbortSignal): Promise<SyncStatus> {
    const { store, clock, lanes } = this.#options;
    const { stored } = this;
    const limits = this.#options.limits();
    const key = contentKey(stored, limits);
    const known = knownBytes(key, started.contentHash);
    const content = await source.fetch(signal, known);
    const finished = { nextSync: this.#next(0), filterHash: key.filter };
    if (content === undefined || content.hash === known) {
      const hash = contentHash(key, known ?? '');
      const same = { ...finished, now: utcTime(clock), changed: false, contentHash: hash };
      const status = syncSucceeded(started, same);
      await store.writeStatus(stored.name, status, this.#lease);
      return status;
    }
    const read = async (): Promise<SyncStatus> => {
      signal.throwIfAborted();
      const { format, filter, mayBeEmpty } = decodeSource(stored);
      const about = { label: source.label, claims: stored.claims, limits, mayBeEmpty, format, filter };
      const { entries, report } = await this.#options.ingest({ bytes: content.bytes, ...about }, signal);
      const at = utcTime(clock);
      const hash = contentHash(key, content.hash);
      const other = { ...finished, now: at, changed: true, report, contentHash: hash };
      const status = syncSucceeded(started, other);
      const replacement = { source: stored.name, entries, at, status, lease: this.#lease };
      await this.#options.apply((await store.replaceEntries(replacement)).revision);
      return status;
    };
    return this.isLocal ? read() : lanes.reading(read);
  }

  /** What was served before goes on being served. */
  async #failed(started: SyncStatus, failure: Error): Promise<Attempt> {
    const { store, clock, log } = this.#options;
    const { name: source } = this.stored;
    if (takenOver(failure).isElsewhere === true) return { failure, isElsewhere: true };
    const nextSync = this.#next(started.attemptCount + 1);
    const status = syncFailed(started, { now: utcTime(clock), nextSync, message: failure.message });
    await store.writeStatus(source, status, this.#lease);
    const about = { source, err: failure, error_type: failureClass(failure), attempts: status.attemptCount };
    log.warn(about, 'synchronisation failed');
    return { status, failure };
  }

  /** A cancelled run is not a failure; the earlier status is restored. */
  async #stopped(before: SyncStatus): Promise<Attempt> {
    await this.#options.store.writeStatus(this.stored.name, before, this.#lease);
    return { status: before };
  }

  /** Whether another replica has done what this turn is for. */
  #isDone(occasion: Occasion, { phase, nextSync, contentHash }: SyncStatus): boolean {
    // The lease is ours, so whoever began died at it.
    if (phase === 'syncing') return false;
    if (occasion === 'start' || occasion === 'asked') return false;
    const { limits, clock } = this.#options;
    const key = contentKey(this.stored, limits());
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

export function asError(error: unknown): Error {
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
