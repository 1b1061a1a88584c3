import { type Clock, type Timer, utcTime } from '@skep/core/time/clock.ts';
import type { Decision } from './decision.ts';
import type { Decided } from './reach.ts';

/** Entries of one kind, which is a decision and a way of asking; there are twelve. */
const MAX_PER_KIND = 120;
const REPEAT_MS = 5_000;
const MAX_REASON_CHARACTERS = 400;
/** Stands for all hosts beyond MAX_PER_KIND. */
export const OTHER_HOSTS = '*';

interface Entry {
  readonly decided: Decided;
  readonly since: number;
  last: number;
  count: number;
  isTold: boolean;
  timer?: Timer;
}

/**
 * Writes what a gateway decides as JSON lines (decision 0256): what is new at once, repeats as a count. A repeat is told 5 s after the
 * last line at the earliest, and an older entry only once its age has doubled, so one entry has fewer than 40 lines in a
 * year. With at most 1,452 entries whoever asks for ever new names gets no more than a few megabytes written.
 */
export class DecisionLog {
  readonly #write: (line: string) => void;
  readonly #clock: Clock;
  /** By kind, then by host and port. */
  readonly #kinds = new Map<string, Map<string, Entry>>();

  constructor(write: (line: string) => void, clock: Clock) {
    this.#write = write;
    this.#clock = clock;
  }

  record(asked: Decided): void {
    const kind = `${asked.decision} ${asked.via}`;
    const entries = this.#kinds.get(kind) ?? new Map<string, Entry>();
    this.#kinds.set(kind, entries);
    const decided = entries.size < MAX_PER_KIND || entries.has(keyOf(asked)) ? asked : othersOf(asked);
    const entry = entries.get(keyOf(decided));
    const now = this.#clock.now();
    if (entry === undefined) {
      const added = { decided, since: now, last: now, count: 1, isTold: false };
      entries.set(keyOf(decided), added);
      this.#tell(added);
    } else {
      entry.count += 1;
      entry.last = now;
      entry.isTold = false;
      entry.timer ??= this.#clock.after(Math.max(REPEAT_MS, now - entry.since), () => this.#tell(entry));
    }
  }

  /** Writes all counts that were not written yet. */
  flush(): void {
    for (const entries of this.#kinds.values())
      for (const entry of entries.values()) if (!entry.isTold) this.#tell(entry);
  }

  #tell(entry: Entry): void {
    entry.timer?.cancel();
    delete entry.timer;
    entry.isTold = true;
    const { decided, last, count } = entry;
    const time = utcTime({ now: () => last });
    const reason = decided.reason?.slice(0, MAX_REASON_CHARACTERS);
    const line: Decision = { time, ...decided, ...(reason === undefined ? {} : { reason }), count };
    this.#write(`${JSON.stringify(line)}\n`);
  }
}

function keyOf({ host, port }: Decided): string {
  return `${port ?? ''} ${host}`;
}

function othersOf({ decision, via }: Decided): Decided {
  return { decision, via, host: OTHER_HOSTS, reason: 'more hosts than are told one by one' };
}
