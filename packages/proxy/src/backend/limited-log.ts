import type { Log } from '@skep/core/log/log.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';

/** Lines of one kind that are written within a minute; the rest are counted. */
const MAX_LINES = 10;
const WINDOW_MS = 60_000;

interface Kind {
  lines: number;
  readonly window: Timer;
}

/**
 * A log for what a server or client can provoke as often as it likes: of each warning and error the first few per minute,
 * then one line with the number of the others.
 */
export class LimitedLog implements Log {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #kinds = new Map<string, Kind>();

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  debug(fields: object, message: string): void {
    this.#log.debug(fields, message);
  }

  info(fields: object, message: string): void {
    this.#log.info(fields, message);
  }

  warn(fields: object, message: string): void {
    if (this.#admits(message)) this.#log.warn(fields, message);
  }

  error(fields: object, message: string): void {
    if (this.#admits(message)) this.#log.error(fields, message);
  }

  child(fields: object): Log {
    return this.#log.child(fields);
  }

  /** Writes the counts that are still owed. Idempotent. */
  close(): void {
    for (const message of this.#kinds.keys()) this.#settle(message);
  }

  /** Messages are fixed sentences, so there are few kinds. */
  #admits(message: string): boolean {
    const kind = this.#kinds.get(message) ?? this.#open(message);
    kind.lines += 1;
    return kind.lines <= MAX_LINES;
  }

  #open(message: string): Kind {
    const kind = { lines: 0, window: this.#clock.after(WINDOW_MS, () => this.#settle(message)) };
    this.#kinds.set(message, kind);
    return kind;
  }

  #settle(message: string): void {
    const kind = this.#kinds.get(message);
    this.#kinds.delete(message);
    kind?.window.cancel();
    const more = (kind?.lines ?? 0) - MAX_LINES;
    if (more > 0) this.#log.warn({ more, of: message }, 'more of the same within a minute');
  }
}
