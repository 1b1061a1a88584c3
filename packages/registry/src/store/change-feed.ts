import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Revision, WrittenEntries, WrittenSource } from './changes.ts';

/** `written` comes with commits of this process that are about entries. */
export type ChangeListener = (revision: Revision, written?: WrittenEntries | WrittenSource) => void;

/**
 * Hears what a commit of this process leaves while the database still works on it: time that nobody uses otherwise. The
 * commit may fail, and the listener may hear of it without; where it hears of it, it gets the same object.
 */
export type PrepareForChange = (written: WrittenEntries) => void;

export interface ChangeFeedOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Milliseconds between polls, for commits that no notice told of. */
  readonly checkEvery: number;
  readonly readRevision: () => Promise<Revision>;
}

/** Tells listeners of commits: of those that it is told of at once, of others when it polls. */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #listeners = new Map<ChangeListener, PrepareForChange | undefined>();
  /** Commits of this process that are under way, and the newest notice that waits for them. */
  #holds = 0;
  #heldSince: number | undefined;
  #heard: Revision = 0;
  #newest: Revision = 0;
  #failing = false;
  #cancelTimer: (() => void) | undefined;
  #polling: Promise<void> | undefined;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  /** The newest commit that anybody has told of, also while telling it waits. */
  get newest(): Revision {
    return Math.max(this.#newest, this.#heard);
  }

  /** Since when commits of this process have been under way, as the clock has elapsed: of overlapping ones, the first. */
  get heldSince(): number | undefined {
    return this.#heldSince;
  }

  subscribe(listener: ChangeListener, prepare?: PrepareForChange): () => void {
    // A map of functions would take the same one only once.
    const own: ChangeListener = (...news) => listener(...news);
    this.#listeners.set(own, prepare);
    if (this.#newest > 0) queueMicrotask(() => this.#listeners.has(own) && own(this.#newest));
    void this.check();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.#stopTimer();
    };
  }

  /**
   * This process is about to commit. Notices wait until it has told what the commit left, for they may be here sooner than
   * the answer to it, and what is known need not be read. Listeners may prepare for `written` as soon as the commit has
   * been sent. Returns what ends the waiting, however the commit went; idempotent.
   */
  hold(written?: WrittenEntries): () => void {
    this.#holds += 1;
    this.#heldSince ??= this.#options.clock.elapsed();
    let isHeld = true;
    const sent = setImmediate(() => {
      if (written !== undefined) this.#prepare(written);
    });
    return () => {
      if (!isHeld) return;
      isHeld = false;
      clearImmediate(sent);
      this.#holds -= 1;
      if (this.#holds > 0) return;
      this.#heldSince = undefined;
      this.told(this.#heard);
    };
  }

  /** What could not be prepared is made when the commit is told. */
  #prepare(written: WrittenEntries): void {
    try {
      for (const prepare of this.#listeners.values()) prepare?.(written);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'cannot prepare for a change');
    }
  }

  /** There is a commit of this revision, made here or elsewhere. */
  told(revision: Revision, written?: WrittenEntries | WrittenSource): void {
    if (!(revision > this.#newest)) return;
    this.#newest = revision;
    for (const listener of this.#listeners.keys()) listener(revision, written);
  }

  /** As a notice of the database says it, which is about own commits too. */
  heard(revision: Revision): void {
    if (revision > this.#heard) this.#heard = revision;
    if (this.#holds === 0) this.told(this.#heard);
  }

  /** Polls now. A store that does not answer is logged once, and asked again after the interval. */
  check(): Promise<void> {
    this.#stopTimer();
    return (this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
      this.#startTimer();
    }));
  }

  /** Ends all subscriptions. Idempotent. */
  close(): void {
    this.#listeners.clear();
    this.#stopTimer();
  }

  async #poll(): Promise<void> {
    try {
      this.told(await this.#options.readRevision());
      this.#failing = false;
    } catch (error) {
      if (!this.#failing && this.#listeners.size > 0) {
        this.#options.log.warn({ err: error }, 'cannot see whether the store has changed; trying again');
      }
      this.#failing = true;
    }
  }

  #startTimer(): void {
    if (this.#listeners.size === 0 || this.#cancelTimer !== undefined) return;
    this.#cancelTimer = this.#options.clock.after(this.#options.checkEvery, () => void this.check()).cancel;
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}
