import type { Log } from '@skep/core/log/log.ts';
import { traceIds } from '@skep/core/telemetry/active-span.ts';
import { userName } from '../../access/authority.ts';
import type { ApiRequest } from './request.ts';

/** A request that is over. */
export interface Exchange {
  readonly request: ApiRequest;
  /** 499 when the caller left before an answer was begun. */
  readonly status: number;
  readonly durationMs: number;
}

/** Someone who watches requests. Must not throw, and must be quick: it runs between requests. */
export interface RequestObserver {
  readonly begin?: (request: ApiRequest) => void;
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
      const exchange = { request, status, durationMs: performance.now() - startedAt };
      for (const observer of observers) observer.end(exchange);
    };
    // A caller that left while the request waited for its turn is told of no more.
    if (response.closed) end();
    else response.once('close', end);
  };
}

/** Requests worth a line: all, or only as a help for debugging (probes ask every few seconds). */
export type RequestLog = 'all' | 'debug' | 'none';

const UNAVAILABLE = 503;

/** One line per request. Queries are left out of it: they are the caller's business. */
export function accessLog(log: Log, requests: Exclude<RequestLog, 'none'>): RequestObserver {
  return {
    end: (exchange) => {
      const fields = fieldsOf(exchange);
      if (requests === 'debug') log.debug(fields, 'HTTP request');
      // Somebody else's outage, which has a line of its own; a caller with a made-up key id can cause it too.
      else if (exchange.status === UNAVAILABLE) log.warn(fields, 'HTTP request');
      else if (exchange.status >= 500) log.error(fields, 'HTTP request');
      else if (exchange.status >= 400) log.warn(fields, 'HTTP request');
      else log.info(fields, 'HTTP request');
    },
  };
}

function fieldsOf({ request, status, durationMs }: Exchange): object {
  return {
    method: request.method,
    path: request.raw.url?.split('?', 1)[0],
    status,
    duration_ms: Math.round(durationMs * 100) / 100,
    response_bytes: request.responseBytes,
    request_id: request.id,
    remote_addr: request.socket.remoteAddress,
    ...callerOf(request),
    ...refusalOf(request),
    ...(request.span === undefined ? {} : traceIds(request.span)),
  };
}

/** Why a request was refused, in the words of its check: the caller hears less. */
function refusalOf({ failure }: ApiRequest): object {
  const { reason, provider } = failure?.detail ?? {};
  return {
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(typeof provider === 'string' ? { provider } : {}),
  };
}

function callerOf({ authority }: ApiRequest): object {
  if (authority === undefined || authority.kind === 'anonymous') return {};
  const user = userName(authority.identity);
  return { sub: authority.identity.subject, ...(user === '' ? {} : { user }) };
}
