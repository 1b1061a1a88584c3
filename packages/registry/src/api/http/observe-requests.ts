import type { Route } from '../route/route.ts';
import type { ApiRequest } from './request.ts';

/** What observers may look at. */
export type ObservedRequest = Pick<
  ApiRequest,
  | 'id'
  | 'raw'
  | 'params'
  | 'method'
  | 'socket'
  | 'headers'
  | 'body'
  | 'authority'
  | 'failure'
  | 'facts'
  | 'span'
>;

/** A request that is over. */
export interface Exchange {
  readonly request: ObservedRequest;
  /** The row of the table that answered; undefined for unknown paths and refused methods. */
  readonly row: Route | undefined;
  /** The path of the table in `{name}` notation; undefined for unknown paths, so that labels stay few. */
  readonly pattern: string | undefined;
  /** 499 when the caller left before an answer was begun. */
  readonly status: number;
  readonly durationMs: number;
  readonly responseBytes: number;
}

/** Someone who watches requests. Must not throw, and must be quick: it runs between requests. */
export interface RequestObserver {
  readonly begin?: (request: ObservedRequest) => void;
  readonly end: (exchange: Exchange) => void;
}

/** What nginx logs for it; no status that is ever sent. */
const CLIENT_GONE = 499;

/**
 * Tells the observers of a request, also of one whose caller goes away. Undefined without observers: watching for the
 * end of an answer costs as much as a small answer.
 */
export function observeRequests(
  observers: readonly RequestObserver[],
): ((request: ApiRequest) => void) | undefined {
  if (observers.length === 0) return undefined;
  const begins = observers.flatMap(({ begin }) => begin ?? []);
  return (request) => {
    const startedAt = performance.now();
    for (const begin of begins) begin(request);
    const { response } = request;
    const end = (): void => {
      const status = response.headersSent ? response.statusCode : CLIENT_GONE;
      const { row, pattern, responseBytes } = request;
      const durationMs = performance.now() - startedAt;
      const exchange = { request, row, pattern, status, responseBytes, durationMs };
      for (const observer of observers) observer.end(exchange);
    };
    // A caller that left while the request waited for its turn is told of no more.
    if (response.closed) end();
    else response.once('close', end);
  };
}
