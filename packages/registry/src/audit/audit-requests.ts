import type { Role } from '@skep/auth/claims/roles.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { limitedField, type AuditEvent, type AuditOutcome } from '@skep/core/audit/audit-event.ts';
import type { AuditLog } from '@skep/core/audit/audit-log.ts';
import { redact, redactText } from '@skep/core/log/redact.ts';
import { userName, type Authority } from '../access/authority.ts';
import type { Exchange, RequestObserver } from '../api/http/observe-requests.ts';
import type { ApiRequest, RequestFailure } from '../api/http/request.ts';
import { joinedName } from '../api/route/route.ts';
import { AUDIT_COMPONENT, eventOf, type AuditEventName } from '../config/audit-events.ts';

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

function eventName({ request: { row }, status }: Exchange): AuditEventName | undefined {
  if (status === UNAUTHENTICATED) return 'auth.unauthenticated';
  return row?.audit === undefined ? undefined : eventOf(row.audit, status);
}

function requestEvent(type: AuditEventName, exchange: Exchange, rule: DataRule): AuditEvent {
  const { request, status, durationMs } = exchange;
  const { data, notes } = rule === 'none' ? NOTHING : requestData(request, rule.maxBytes);
  return {
    type,
    outcome: outcomeOf(status),
    component: AUDIT_COMPONENT,
    source: sourceOf(request),
    subjects: type === 'auth.unauthenticated' ? subjectsOf(undefined) : subjectsOf(request.authority),
    target: targetOf(type, request),
    metadata: {
      extra: {
        request_id: request.id,
        status,
        duration_ms: Math.round(durationMs),
        response_bytes: request.responseBytes,
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
function sourceOf({ socket, headers }: ApiRequest): AuditEvent['source'] {
  const noted = { x_forwarded_for: headers['x-forwarded-for'], user_agent: headers['user-agent'] };
  const extra = Object.entries(noted).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, limitedField(String(value))]],
  );
  const { remoteAddress = 'unknown', remotePort = 0 } = socket;
  const host = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress;
  return { type: 'network', value: `${host}:${remotePort}`, extra: Object.fromEntries(extra) };
}

/** How a request ended, by its status. 401 is nobody's right to ask, 403 somebody's lack of it. */
function outcomeOf(status: number): AuditOutcome {
  if (status < 400) return 'success';
  if (status === 401 || status === 403) return 'denied';
  return status < 500 ? 'failure' : 'error';
}

const ROLE_NAMES: Readonly<Record<Role, string>> = {
  superAdmin: 'super_admin',
  manageSources: 'manage_sources',
  manageRegistries: 'manage_registries',
  manageEntries: 'manage_entries',
};

/** Who did it. Members without a value are left out. */
function subjectsOf(authority: Authority | undefined): Record<string, string> {
  if (authority === undefined) return { identity: 'unknown' };
  if (authority.kind === 'anonymous') return { identity: 'anonymous' };
  const { identity } = authority;
  const roles = authority.kind === 'full' ? authority.roles.map((role) => ROLE_NAMES[role]) : [];
  const members = { sub: identity.subject, user: userName(identity), role: roles.join(',') };
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => (value === '' ? [] : [[name, limitedField(value)]])),
  );
}

const MAX_PATH_CHARACTERS = 2048;

/** Which member of the target a path parameter is. Names that are not here are the name of the resource itself. */
const MEMBERS: Readonly<Record<string, string>> = {
  registry: 'registry_name',
  namespace: 'namespace',
  type: 'entry_type',
  version: 'version',
};

/** To what it was done: names decoded, without the query, which is the caller's business. */
function targetOf(event: AuditEventName, { method, raw, params }: ApiRequest): Record<string, string> {
  const named = Object.entries(joinedName(params)).map(([name, value]) => [
    MEMBERS[name] ?? 'resource_name',
    limitedField(String(value)),
  ]);
  return {
    method,
    path: limitedField(raw.url?.split('?', 1)[0] ?? '', MAX_PATH_CHARACTERS),
    ...(event === 'auth.unauthenticated' ? {} : { resource_type: event.split('.', 1)[0] ?? '' }),
    ...Object.fromEntries(named),
  };
}

/** What the log holds of a body. */
interface RequestData {
  readonly data?: unknown;
  /** Notes about it for `metadata.extra`. */
  readonly notes: Readonly<Record<string, unknown>>;
}

const CHANGING = new Set(['POST', 'PUT', 'DELETE']);
const NOTHING: RequestData = { notes: {} };

/**
 * The body of a changing request: as JSON where it is JSON, else as text, with secrets redacted. A larger one is left
 * out and noted: half a document cannot be redacted by its member names.
 */
function requestData({ method, body }: ApiRequest, maxBytes: number): RequestData {
  if (!CHANGING.has(method) || !Buffer.isBuffer(body) || body.length === 0) return NOTHING;
  if (body.length > maxBytes) return { notes: { request_truncated: true, request_bytes: body.length } };
  return { data: redactedBody(body.toString('utf8')), notes: {} };
}

function redactedBody(text: string): unknown {
  try {
    return redact(parseJson(text));
  } catch {
    // Not JSON, which is what the request will have been refused for.
    return redactText(text);
  }
}
