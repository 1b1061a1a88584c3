import type { Places } from '@skep/core/files/places.ts';
import { type Clock, utcTime } from '@skep/core/time/clock.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { readStatus, writeStatus, type StatusWord } from './state.ts';

/** Writes one workload's status, in the order told. The process that holds it hosts the workload. */
export interface StatusRecord {
  /** `context` is for people. Hosting states carry this process's identity, the others none. */
  set(status: StatusWord, context?: string): Promise<void>;
}

export interface StatusRecordOptions {
  readonly places: Places;
  readonly name: string;
  readonly clock: Clock;
  readonly self: ProcessIdentity;
}

/** Times of an earlier status of the same workload are kept: `created_at` always, `started_at` while it runs. */
export function openStatusRecord(options: StatusRecordOptions): StatusRecord {
  const { places, name, clock, self } = options;
  let last: Promise<void> = Promise.resolve();

  async function write(status: StatusWord, context: string | undefined): Promise<void> {
    const now = utcTime(clock);
    // A damaged file is replaced: it was copied aside when it was read.
    const before = await readStatus(places, name).catch(() => undefined);
    const hosting = status !== 'stopped' && status !== 'error';
    const startedAt = status === 'running' ? startOf(before, now) : undefined;
    await writeStatus(places, name, {
      status,
      ...(context === undefined ? {} : { status_context: context }),
      created_at: before?.created_at ?? now,
      updated_at: now,
      ...(startedAt === undefined ? {} : { started_at: startedAt }),
      process_id: hosting ? self.pid : 0,
      process_started: hosting ? self.started : '',
    });
  }

  return {
    set(status, context) {
      const next = last.then(() => write(status, context));
      last = next.catch(() => {
        // The caller of this set hears of the failure; the next set must still be tried.
      });
      return next;
    },
  };
}

function startOf(before: { status: StatusWord; started_at?: string } | undefined, now: string): string {
  return before?.status === 'running' && before.started_at !== undefined ? before.started_at : now;
}
