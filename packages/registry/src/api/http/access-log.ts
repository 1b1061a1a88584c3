import type { Log } from '@skep/core/log/log.ts';
import { traceIds } from '@skep/core/telemetry/active-span.ts';
import { userName } from '../../access/caller.ts';
import type { Exchange, ObservedRequest, RequestObserver } from './observe-requests.ts';

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

function fieldsOf({ request, status, durationMs, responseBytes }: Exchange): object {
  return {
    method: request.method,
    path: request.raw.url?.split('?', 1)[0],
    status,
    duration_ms: Math.round(durationMs * 100) / 100,
    response_bytes: responseBytes,
    request_id: request.id,
    remote_addr: request.socket.remoteAddress,
    ...callerOf(request),
    ...refusalOf(request),
    ...(request.span === undefined ? {} : traceIds(request.span)),
  };
}

/** Why a request was refused, in the words of its check: the caller hears less. */
function refusalOf({ failure }: ObservedRequest): object {
  const { reason, provider } = failure?.detail ?? {};
  return {
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(typeof provider === 'string' ? { provider } : {}),
  };
}

function callerOf({ authority }: ObservedRequest): object {
  if (authority === undefined || authority.kind === 'anonymous') return {};
  const user = userName(authority.identity);
  return { sub: authority.identity.subject, ...(user === '' ? {} : { user }) };
}
