import { limitedField } from '@skep/core/audit/audit-event.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { redactText, redactUrl } from '@skep/core/log/redact.ts';
import type { Call } from '../../call/call.ts';
import { clientAddress } from '../../call/client-address.ts';
import { pathWithMarks, sessionMark } from '../../call/session-mark.ts';
import { saysError } from '../../call/tool-counts.ts';
import type { CallEnd } from '../../call/watch-call.ts';
import { clientInfoOf } from '../../message/client-info.ts';
import { member, memberAt } from '../../message/json-rpc.ts';
import { resourceIdOf } from '../../message/resource-id.ts';
import type { NamedThing } from './names.ts';

export type Attributes = Record<string, string | number>;

/** Names of before, where they are others. */
const LEGACY: Readonly<Record<string, string>> = {
  'http.request.method': 'http.method',
  'url.full': 'http.url',
  'url.scheme': 'http.scheme',
  'server.address': 'http.host',
  'url.path': 'http.target',
  'user_agent.original': 'http.user_agent',
  'http.request.body.size': 'http.request_content_length',
  'http.response.status_code': 'http.status_code',
  'http.response.body.size': 'http.response_content_length',
  'mcp.method.name': 'mcp.method',
  'rpc.system.name': 'rpc.system',
  'jsonrpc.request.id': 'mcp.request.id',
  'mcp.resource.uri': 'mcp.resource.id',
  'gen_ai.tool.name': 'mcp.tool.name',
  'gen_ai.tool.call.arguments': 'mcp.tool.arguments',
  'gen_ai.prompt.name': 'mcp.prompt.name',
};

/** Beside the names of today, those of before that say the same. */
export function withLegacy(attributes: Attributes): Attributes {
  const old = Object.entries(attributes).flatMap(([name, value]) => {
    const before = LEGACY[name];
    return before === undefined ? [] : [[before, value]];
  });
  return { ...attributes, ...(Object.fromEntries(old) as Attributes) };
}

export interface AboutProxy {
  readonly name: string;
  readonly transport: 'stdio' | 'streamable-http' | 'sse';
  readonly trustProxyHeaders: boolean;
}

/** The path of a call without what it may hold of sessions and secrets. */
export function shownPath({ path }: Pick<Call, 'path'>): string {
  return limitedField(redactText(pathWithMarks(path)));
}

/** What a span says of a call before it is answered: no query, token, session id or value of an argument. */
export function askedAttributes(call: Call, thing: NamedThing | undefined, about: AboutProxy): Attributes {
  const { req } = call;
  const host = call.authority ?? req.headers.host ?? '';
  const path = shownPath(call);
  const session = sessionMark(call);
  const size = Number(req.headers['content-length']);
  return {
    'http.request.method': req.method ?? '',
    'url.scheme': 'http',
    'url.path': path,
    'url.full': limitedField(`http://${host}${path}`),
    'server.address': limitedField(host.replace(/:\d+$/u, '')),
    'network.transport': about.transport === 'stdio' ? 'pipe' : 'tcp',
    'network.protocol.name': 'http',
    'network.protocol.version': req.httpVersion,
    'client.address': clientAddress(call, about.trustProxyHeaders),
    'mcp.server.name': about.name,
    ...(req.socket.remotePort === undefined ? {} : { 'client.port': req.socket.remotePort }),
    ...(req.headers['user-agent'] === undefined
      ? {}
      : { 'user_agent.original': limitedField(redactText(req.headers['user-agent'])) }),
    ...(Number.isSafeInteger(size) ? { 'http.request.body.size': size } : {}),
    ...(session === undefined ? {} : { 'mcp.session.id': session }),
    ...messageAttributes(call),
    ...thingAttributes(call, thing),
  };
}

/** Methods that name a resource. */
const OF_RESOURCE = new Set(['resources/read', 'resources/subscribe', 'resources/unsubscribe']);

function messageAttributes({ incoming, req }: Call): Attributes {
  const message = incoming?.message;
  if (message === undefined || message.kind === 'response') return {};
  const client = member(clientInfoOf(message), 'name');
  const version = req.headers['mcp-protocol-version'];
  const uri = OF_RESOURCE.has(message.method) ? resourceIdOf(message) : undefined;
  return {
    'mcp.method.name': limitedField(message.method),
    'rpc.system.name': 'jsonrpc',
    'jsonrpc.protocol.version': '2.0',
    ...(message.kind === 'request' ? { 'jsonrpc.request.id': limitedField(message.id, 64) } : {}),
    ...(typeof client === 'string' ? { 'mcp.client.name': limitedField(client) } : {}),
    ...(typeof version === 'string' ? { 'mcp.protocol.version': limitedField(version, 64) } : {}),
    ...(uri === undefined
      ? {}
      : { 'mcp.resource.uri': limitedField(redactUrl(uri.slice(0, 2048)).split('?', 1)[0] ?? '') }),
  };
}

const MAX_ARGUMENTS = 200;

function thingAttributes({ incoming }: Call, thing: NamedThing | undefined): Attributes {
  if (thing === undefined) return {};
  const name = limitedField(redactText(thing.name.slice(0, 2048)), 128);
  if (thing.kind === 'prompt') return { 'gen_ai.prompt.name': name };
  const given = memberAt(incoming?.message.value, ['params', 'arguments']);
  return {
    'gen_ai.tool.name': name,
    'gen_ai.operation.name': 'execute_tool',
    ...(isRecord(given) ? { 'gen_ai.tool.call.arguments': argumentKinds(given) } : {}),
  };
}

/** Names of arguments with the kinds of their values: the values are the client's business (decision 0346). */
function argumentKinds(given: Readonly<Record<string, unknown>>): string {
  const kinds = Object.entries(given)
    .slice(0, MAX_ARGUMENTS)
    .map(([name, value]) => [
      name.slice(0, 100),
      Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value,
    ]);
  return limitedField(JSON.stringify(Object.fromEntries(kinds)), MAX_ARGUMENTS);
}

/** Codes of JSON-RPC and MCP, and of the proxy; a server may answer any. */
const KNOWN_CODES = new Set(
  [
    -32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32003, -32020, -32021, -32022, -32042,
    403, 429,
  ].map(String),
);

/** Of as few kinds as there are codes that are known, for what is kept of every kind. */
export function errorLabel(end: CallEnd): string | undefined {
  const type = errorType(end);
  return end.answer?.failed !== true || type === undefined || KNOWN_CODES.has(type) ? type : '_OTHER';
}

/** What kind of failure a call ended with: a status, a JSON-RPC code, or what a tool says of itself. */
export function errorType({ status, answer }: CallEnd): string | undefined {
  if (answer?.failed === true) {
    const code = memberAt(answer.value, ['error', 'code']);
    return typeof code === 'number' ? String(code) : 'jsonrpc_error';
  }
  if (answer !== undefined && saysError(answer)) return 'tool_error';
  if (status === undefined) return 'incomplete';
  return status >= 400 ? String(status) : undefined;
}
