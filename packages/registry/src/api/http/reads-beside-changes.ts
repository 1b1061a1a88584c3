import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '@skep/core/time/clock.ts';

/** A server's handler. */
type Handle = (request: IncomingMessage, response: ServerResponse) => void;

export interface CommitUnderWay {
  /** See OpenedStore. */
  readonly committingSince?: () => number | undefined;
}

interface WaitingRead {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Milliseconds, as the clock has elapsed. */
  readonly arrivedAt: number;
}

/** How long after a change the next one is expected, milliseconds. */
const LINGER_MS = 5;
/** Milliseconds that a commit may have taken, and a read may have waited, while the read waits on. */
const HOLD_MS = 1;
/** Beyond these the oldest is answered at once: one connection can send thousands, and the others would wait for all of them. */
const MAX_WAITING = 64;

/**
 * A change waits for the event loop each time that something arrives for it, and all reads that have arrived meanwhile
 * are answered before. While changes are under way, and a moment longer, each turn of the loop therefore answers one
 * read only: as many are answered in the same time, and a change waits for one read instead of one of every reader.
 *
 * A database on the same machine needs a processor as well, which a loop that always has something to do does not give
 * away. While it works on a commit and changes are under way reads therefore wait, until one has waited for a
 * millisecond: two at most, where the timer comes late for it (decision 0471). Then they have their turns as above.
 */
export function readsBesideChanges(
  handle: Handle,
  { clock, committingSince = () => undefined }: CommitUnderWay & { readonly clock: Clock },
): Handle {
  let waiting: WaitingRead[] = [];
  let changes = 0;
  let lastAt = -Infinity;
  let isTurnDue = false;
  let cancelHold: (() => void) | undefined;
  const isToWait = ({ arrivedAt }: WaitingRead): boolean => {
    const since = changes > 0 ? committingSince() : undefined;
    return since !== undefined && clock.elapsed() - Math.min(since, arrivedAt) < HOLD_MS;
  };
  const answerOldest = (): void => {
    const oldest = waiting.shift();
    planTurn();
    if (oldest !== undefined) handle(oldest.request, oldest.response);
  };
  const takeTurn = (): void => {
    isTurnDue = false;
    cancelHold = undefined;
    const [oldest] = waiting;
    if (oldest !== undefined && isToWait(oldest)) planTurn();
    else answerOldest();
  };
  const planTurn = (): void => {
    const [oldest] = waiting;
    if (isTurnDue) return;
    if (oldest !== undefined && isToWait(oldest)) {
      cancelHold ??= clock.after(HOLD_MS, takeTurn).cancel;
      return;
    }
    cancelHold?.();
    cancelHold = undefined;
    isTurnDue = oldest !== undefined;
    if (isTurnDue) setImmediate(takeTurn);
  };
  const takeChange: Handle = (request, response) => {
    changes += 1;
    response.once('close', () => {
      changes -= 1;
      lastAt = clock.elapsed();
      planTurn();
    });
    // What was asked for before it on the same connection must not see what it changes (RFC 9112 §9.3.2).
    const { own = [], others = [] } = Object.groupBy(waiting, (read) =>
      read.request.socket === request.socket ? 'own' : 'others',
    );
    waiting = others;
    planTurn();
    for (const read of own) handle(read.request, read.response);
    handle(request, response);
  };
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return takeChange(request, response);
    const isBusy = waiting.length > 0 || changes > 0 || clock.elapsed() - lastAt < LINGER_MS;
    if (!isBusy) return handle(request, response);
    waiting.push({ request, response, arrivedAt: clock.elapsed() });
    if (waiting.length > MAX_WAITING) answerOldest();
    else planTurn();
  };
}
