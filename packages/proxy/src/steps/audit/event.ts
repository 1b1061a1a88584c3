import type { Identity } from '@skep/auth/token/identity.ts';
import { limitedField, type AuditEvent, type AuditOutcome } from '@skep/core/audit/audit-event.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { redact, redactText } from '@skep/core/log/redact.ts';
import type { Call } from '../../call/call.ts';
import { clientAddress } from '../../call/client-address.ts';
import { delegationOf } from '../../call/delegation.ts';
import { opensStream, type CallEnd } from '../../call/watch-call.ts';
import { pathWithMarks, sessionMark } from '../../call/session-mark.ts';
import { clientInfoOf } from '../../message/client-info.ts';
import { member, memberAt, type JsonObject, type Message } from '../../message/json-rpc.ts';
import { resourceIdOf } from '../../message/resource-id.ts';
import type { AuditSettings, AuditType } from './settings.ts';

const TYPES: ReadonlyMap<string, AuditType> = new Map([
  ['initialize', 'mcp_initialize'],
  ['tools/call', 'mcp_tool_call'],
  ['tools/list', 'mcp_tools_list'],
  ['resources/read', 'mcp_resource_read'],
  ['resources/list', 'mcp_resources_list'],
  ['prompts/get', 'mcp_prompt_get'],
  ['prompts/list', 'mcp_prompts_list'],
  ['ping', 'mcp_ping'],
  ['logging/setLevel', 'mcp_logging'],
  ['completion/complete', 'mcp_completion'],
  ['notifications/message', 'mcp_notification'],
  ['notifications/roots/list_changed', 'mcp_roots_list_changed'],
]);

const MAX_PATH = 2048;
const MAX_ERROR = 256;

/** What of a call its event tells, as it is once the steps are through with it: nothing that leads to the body. */
export type CallFacts = Pick<AuditEvent, 'type' | 'source' | 'subjects' | 'delegation' | 'target'> & {
  readonly transport: 'sse' | 'http';
  /** Where it is to be kept, and small enough. */
  readonly request: unknown;
  readonly requestTruncated: boolean;
};

export function factsOf(call: Call, settings: AuditSettings, trustProxyHeaders: boolean): CallFacts {
  const { req, path, identity, incoming } = call;
  const isStream = opensStream(call);
  const message = incoming?.message;
  const data = settings.withRequests && message ? keptData(message.text, settings.maxDataBytes) : NO_DATA;
  return {
    type: isStream ? 'sse_connection' : typeOf(message),
    source: {
      type: 'network',
      value: clientAddress(call, trustProxyHeaders),
      extra: withoutNothing({
        user_agent: req.headers['user-agent'],
        request_id: req.headers['x-request-id'],
        session_id: sessionMark(call),
      }),
    },
    subjects: subjectsOf(identity, message),
    delegation: identity && delegationOf(identity, settings.maxDelegationDepth),
    target: {
      endpoint: limitedField(redactText(pathWithMarks(path)), MAX_PATH),
      ...targetOf(req.method ?? '', message, isStream),
    },
    transport: path === '/sse' || path === '/messages' ? 'sse' : 'http',
    request: data.value,
    requestTruncated: data.isTruncated,
  };
}

function typeOf(message: Message | undefined): AuditType {
  if (message === undefined || message.kind === 'response') return 'http_request';
  return TYPES.get(message.method) ?? 'mcp_request';
}

function targetOf(verb: string, message: Message | undefined, isStream: boolean): Record<string, string> {
  if (message === undefined || message.kind === 'response')
    return { method: verb, type: isStream ? 'sse_endpoint' : 'endpoint' };
  const { method } = message;
  const kind = /^(?:tool|resource|prompt)(?=s\/)/u.exec(method)?.[0] ?? 'endpoint';
  const name = resourceIdOf(message);
  return {
    method: limitedField(method),
    type: kind,
    ...(name === undefined ? {} : { name: limitedField(redactText(name.slice(0, MAX_PATH))) }),
  };
}

/** Who did it. Members without a value are left out. */
function subjectsOf(identity: Identity | undefined, message: Message | undefined): Record<string, string> {
  const client = message === undefined ? undefined : clientInfoOf(message);
  return withoutNothing({
    user_id: identity?.subject,
    user: identity === undefined ? 'anonymous' : userOf(identity),
    client_name: member(client, 'name'),
    client_version: member(client, 'version'),
  });
}

function userOf({ claims, name, email }: Identity): string {
  const said = [claims['name'], claims['preferred_username'], email, name];
  return said.find((one): one is string => typeof one === 'string' && one !== '') ?? 'anonymous';
}

function withoutNothing(fields: Readonly<Record<string, unknown>>): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string' && value !== '') given[name] = limitedField(value);
  return given;
}

interface Kept {
  readonly value: unknown;
  readonly isTruncated: boolean;
}

const NO_DATA: Kept = { value: undefined, isTruncated: false };

/** A text as JSON where it is that, without secrets. One that is larger is left out: half of it cannot be redacted. */
function keptData(text: string, maxBytes: number): Kept {
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes)
    return { value: undefined, isTruncated: true };
  try {
    return { value: redact(withoutSensitive(parseJson(text))), isTruncated: false };
  } catch {
    return { value: redactText(text), isTruncated: false };
  }
}

const SENSITIVE = /password|token|secret|key|auth|credential|private/iu;

/** Of the arguments of tools nobody knows how they name their secrets. */
function withoutSensitive(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSensitive);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      SENSITIVE.test(name) ? '[redacted]' : withoutSensitive(one),
    ]),
  );
}

/** What is told of an answer. */
interface Heard {
  readonly error: { readonly code: number | undefined; readonly message: string } | undefined;
  readonly data: Kept;
}

export function heardOf({ answer, refusal }: CallEnd, settings: AuditSettings): Heard {
  const text = answer?.text ?? refusal;
  const value = answer === undefined ? refusalOf(refusal) : answer.failed ? answer.value : undefined;
  return {
    error: settings.detectsErrors && value !== undefined ? errorOf(value) : undefined,
    data: settings.withResponses && text !== undefined ? keptData(text, settings.maxDataBytes) : NO_DATA,
  };
}

/** A refusal in JSON-RPC; undefined for one of another kind. */
function refusalOf(body: string | undefined): JsonObject | undefined {
  try {
    const value = body === undefined ? undefined : parseJson(body);
    return isRecord(value) && typeof memberAt(value, ['error', 'code']) === 'number' ? value : undefined;
  } catch {
    return undefined;
  }
}

function errorOf(value: JsonObject): Heard['error'] {
  const [code, message] = ['code', 'message'].map((name) => memberAt(value, ['error', name]));
  return {
    code: typeof code === 'number' ? code : undefined,
    message: typeof message === 'string' ? limitedField(redactText(message.slice(0, 1024)), MAX_ERROR) : '',
  };
}

/** The code that policies refuse with, whatever status they do it with. */
const DENIED = 403;

export function outcomeOf(status: number | undefined, error: Heard['error']): AuditOutcome {
  if (status === 401 || status === 403 || error?.code === DENIED) return 'denied';
  if (status === undefined) return 'failure';
  if (status >= 500) return 'error';
  if (status >= 400) return 'failure';
  return error === undefined ? 'success' : 'application_error';
}
