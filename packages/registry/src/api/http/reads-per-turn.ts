import type { IncomingMessage, ServerResponse } from 'node:http';

/** A server's handler. */
type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** How long after a change the next one is expected, milliseconds. */
const LINGER_MS = 5;
/** Further ones are answered as they come: one connection can send thousands, and the others would wait for all of them. */
const MAX_WAITING = 64;

/**
 * A change waits for the event loop each time that something arrives for it, and all reads that have arrived meanwhile
 * are answered before. While changes are under way, and a moment longer, each turn of the loop therefore answers one
 * read only: whoever reads waits as long as before, and a change waits for one read instead of one of every reader.
 */
export function readsPerTurn(handle: Handle, now: () => number): Handle {
  const waiting: (readonly [IncomingMessage, ServerResponse])[] = [];
  let changes = 0;
  let lastAt = -Infinity;
  const turn = (): void => {
    const next = waiting.shift();
    if (waiting.length > 0) setImmediate(turn);
    if (next !== undefined) handle(...next);
  };
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      changes += 1;
      response.once('close', () => {
        changes -= 1;
        lastAt = now();
      });
      handle(request, response);
      return;
    }
    const isBusy = waiting.length > 0 || changes > 0 || now() - lastAt < LINGER_MS;
    if (!isBusy || waiting.length >= MAX_WAITING) handle(request, response);
    else if (waiting.push([request, response]) === 1) setImmediate(turn);
  };
}
