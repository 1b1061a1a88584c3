import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '@skep/core/time/clock.ts';

/** A server's handler. */
type Handle = (request: IncomingMessage, response: ServerResponse) => void;

export interface CommitUnderWay {
  /** See OpenedStore. */
  readonly committingSince?: (() => number | undefined) | undefined;
}

interface WaitingRead {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Milliseconds, as the clock has elapsed. */
  readonly arrivedAt: number;
}

/** How long after a change the next one is expected, milliseconds. */
const LINGER_MS = 5;
/** What a read may wait for a commit, and a commit keep reads waiting, milliseconds. */
const HOLD_MS = 1;
/** Further ones are answered as they come: one connection can send thousands, and the others would wait for all of them. */
const MAX_WAITING = 64;

/**
 * A change waits for the event loop each time that something arrives for it, and all reads that have arrived meanwhile
 * are answered before. While changes are under way, and a moment longer, each turn of the loop therefore answers one
 * read only: whoever reads waits as long as before, and a change waits for one read instead of one of every reader.
 *
 * A database on the same machine needs a processor as well, which a loop that always has something to do does not give
 * away. While it works on a commit reads therefore wait, a millisecond at most (decision 0471).
 */
export function readsBesideChanges(
  handle: Handle,
  { clock, committingSince = () => undefined }: CommitUnderWay & { readonly clock: Clock },
): Handle {
  let waiting: WaitingRead[] = [];
  let changes = 0;
  let lastAt = -Infinity;
  let cancelTurn: (() => void) | undefined;
  const takeTurn = (): void => {
    cancelTurn = undefined;
    const next = waiting.shift();
    planTurn();
    if (next !== undefined) handle(next.request, next.response);
  };
  const planTurn = (): void => {
    const [next] = waiting;
    if (next === undefined || cancelTurn !== undefined) return;
    const from = changes > 0 ? committingSince() : undefined;
    const held = from === undefined ? 0 : Math.min(from, next.arrivedAt) + HOLD_MS - clock.elapsed();
    if (held > 0) {
      cancelTurn = clock.after(held, takeTurn).cancel;
    } else {
      const turn = setImmediate(takeTurn);
      cancelTurn = () => clearImmediate(turn);
    }
  };
  const endChange = (): void => {
    changes -= 1;
    lastAt = clock.elapsed();
    cancelTurn?.();
    cancelTurn = undefined;
    planTurn();
  };
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      changes += 1;
      response.once('close', endChange);
      // What was asked for before it on the same connection must not see what it changes (RFC 9112 §9.3.2).
      const { own = [], others = [] } = Object.groupBy(waiting, ({ request: { socket } }) =>
        socket === request.socket ? 'own' : 'others',
      );
      waiting = others;
      for (const read of own) handle(read.request, read.response);
      handle(request, response);
      return;
    }
    const isBusy = waiting.length > 0 || changes > 0 || clock.elapsed() - lastAt < LINGER_MS;
    if (!isBusy || waiting.length >= MAX_WAITING) {
      handle(request, response);
      return;
    }
    waiting.push({ request, response, arrivedAt: clock.elapsed() });
    planTurn();
  };
}
