import { type AuditEvent, type AuditOutcome, limitedField } from '@skep/core/audit/audit-event.ts';
import type { AuditLog } from '@skep/core/audit/audit-log.ts';
import type { Exchange, ObservedRequest, RequestObserver } from '../api/http/observe-requests.ts';
import type { RequestFailure } from '../api/http/request.ts';
import { joinedName } from '../api/reads/registry-route.ts';
import type { RawParameters } from '../api/route/parameter.ts';
import { AUDIT_COMPONENT, type AuditEventName, eventOf } from '../config/audit-events.ts';
import { requestData } from './request-data.ts';
import { subjectsOf } from './subjects.ts';
import { targetOf } from './target.ts';

/** How much of a body is kept: none, or up to so many bytes. */
export type DataRule = 'none' | { readonly maxBytes: number };

const UNAUTHENTICATED = 401;

/** One event per request whose row names one, and one per request without a valid token. */
export function auditRequests(log: AuditLog, data: DataRule): RequestObserver {
  return {
    end: (exchange) => {
      const event = eventName(exchange);
      if (event !== undefined && log.wants(event)) log.record(requestEvent(event, exchange, data));
    },
  };
}

function eventName({ row, status }: Exchange): AuditEventName | undefined {
  if (status === UNAUTHENTICATED) return 'auth.unauthenticated';
  return row?.audit === undefined ? undefined : eventOf(row.audit, status);
}

function requestEvent(type: AuditEventName, exchange: Exchange, rule: DataRule): AuditEvent {
  const { request, status, durationMs, responseBytes } = exchange;
  const { data, notes } =
    rule === 'none' ? { notes: {} } : requestData(request.method, request.body, rule.maxBytes);
  const { url = '' } = request.raw;
  return {
    type,
    outcome: outcomeOf(status),
    component: AUDIT_COMPONENT,
    source: sourceOf(request),
    subjects: type === 'auth.unauthenticated' ? subjectsOf(undefined) : subjectsOf(request.authority),
    target: targetOf(type, { method: request.method, url, params: joinedName(paramsOf(request)) }),
    metadata: {
      extra: {
        request_id: request.id,
        status,
        duration_ms: Math.round(durationMs),
        response_bytes: responseBytes,
        ...(request.failure === undefined ? {} : refusalOf(request.failure)),
        ...notes,
        ...request.facts,
      },
    },
    ...(data === undefined ? {} : { data }),
  };
}

/** The code of a refusal, and what a check has said that the caller does not hear. */
function refusalOf({ code, detail: { reason, provider } }: RequestFailure): Readonly<Record<string, string>> {
  return {
    reason: code,
    ...(typeof reason === 'string' ? { cause: reason } : {}),
    ...(typeof provider === 'string' ? { provider } : {}),
  };
}

/** The peer as the system knows it. What headers claim is noted and trusted by nobody. */
function sourceOf({ socket, headers }: ObservedRequest): AuditEvent['source'] {
  const noted = { x_forwarded_for: headers['x-forwarded-for'], user_agent: headers['user-agent'] };
  const extra = Object.entries(noted).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, limitedField(String(value))]],
  );
  const { remoteAddress = 'unknown', remotePort = 0 } = socket;
  const host = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress;
  return { type: 'network', value: `${host}:${remotePort}`, extra: Object.fromEntries(extra) };
}

function paramsOf({ params }: ObservedRequest): RawParameters {
  return typeof params === 'object' && params !== null ? { ...params } : {};
}

/** How a request ended, by its status. 401 is nobody's right to ask, 403 somebody's lack of it. */
export function outcomeOf(status: number): AuditOutcome {
  if (status < 400) return 'success';
  if (status === 401 || status === 403) return 'denied';
  return status < 500 ? 'failure' : 'error';
}
