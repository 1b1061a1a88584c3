import type { Log } from '@skep/core/log/log.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';

/** Lines of one kind that are written within a minute; the rest are counted. */
const MAX_LINES = 10;
const WINDOW_MS = 60_000;

/** A log with an end. `close` writes the counts that are still owed; idempotent. */
export interface LimitedLog extends Log {
  close(): void;
}

/**
 * A log for what a server or client can provoke as often as it likes: of each warning and error the first few per minute,
 * then one line with the number of the others. Messages are fixed sentences, so there are few kinds.
 */
export function limitedLog(log: Log, clock: Clock): LimitedLog {
  const kinds = new Map<string, { lines: number; readonly window: Timer }>();
  function settle(message: string): void {
    const kind = kinds.get(message);
    kinds.delete(message);
    kind?.window.cancel();
    const more = (kind?.lines ?? 0) - MAX_LINES;
    if (more > 0) log.warn({ more, of: message }, 'more of the same within a minute');
  }
  function admits(message: string): boolean {
    const kind = kinds.get(message) ?? { lines: 0, window: clock.after(WINDOW_MS, () => settle(message)) };
    kinds.set(message, kind);
    kind.lines += 1;
    return kind.lines <= MAX_LINES;
  }
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn(fields, message) {
      if (admits(message)) log.warn(fields, message);
    },
    error(fields, message) {
      if (admits(message)) log.error(fields, message);
    },
    child: (fields) => log.child(fields),
    close() {
      for (const message of kinds.keys()) settle(message);
    },
  };
}
