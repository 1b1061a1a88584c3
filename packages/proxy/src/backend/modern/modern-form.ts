import { isRecord } from '@skep/core/json/is-record.ts';
import { findMembers, findPath, rawAt, splice } from '@skep/core/json/scan.ts';
import { META, REQUEST_META, withMember } from '../../message/envelope.ts';
import {
  member,
  memberAt,
  readMessage,
  resultOf,
  type JsonObject,
  type Notification,
  type Response,
} from '../../message/json-rpc.ts';
import { CACHEABLE, METHODS } from '../../message/methods.ts';
import { MODERN_VERSION } from '../../message/protocol-version.ts';

/** Whatever a legacy server lists may be another thing a moment later, and it may not be the same for everybody. */
const NOT_KEPT = '"ttlMs":0,"cacheScope":"private"';
const RESULT_MEMBERS = new Set(['resultType', 'ttlMs', 'cacheScope']);
/** Error codes for a resource that is not there: MCP 2025-11-25 and before, and since. */
const NOT_FOUND_BEFORE = -32002;
const NOT_FOUND = '-32602';

/** The answer of a legacy server to a request of `method` as modern clients know it; all its other bytes stay. */
export function modernReply(reply: Response, method: string): Response {
  if (reply.failed) return method === METHODS.readResource ? withModernCode(reply) : reply;
  const span = findPath(reply.text, ['result']);
  const given = span && findMembers(reply.text, span.start, RESULT_MEMBERS);
  if (given === undefined) return reply;
  const hints = CACHEABLE.has(method) && !given.has('ttlMs') && !given.has('cacheScope') ? [NOT_KEPT] : [];
  const type = given.has('resultType') ? [] : ['"resultType":"complete"'];
  const added = [...type, ...hints].join(',');
  return added === '' ? reply : again(reply, withMember(reply.text, ['result'], added));
}

function withModernCode(reply: Response): Response {
  const path = ['error', 'code'];
  const span = memberAt(reply.value, path) === NOT_FOUND_BEFORE ? findPath(reply.text, path) : undefined;
  return span === undefined ? reply : again(reply, splice(reply.text, [{ span, text: NOT_FOUND }]));
}

/** A text that began as a message is one still. */
function again<M extends Response | Notification>(before: M, text: string): M {
  const read = readMessage(text);
  return typeof read === 'string' || read.kind !== before.kind ? before : (read as M);
}

/** The answer to `server/discover`, from the result of a handshake. */
export function discovered(id: string, agreed: JsonObject): Response {
  const { capabilities, instructions, serverInfo } = agreed;
  const result = {
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    supportedVersions: [MODERN_VERSION],
    capabilities: isRecord(capabilities) ? modernCapabilities(capabilities) : {},
    ...(typeof instructions === 'string' && { instructions }),
    ...(isRecord(serverInfo) && { _meta: { [META.serverInfo]: serverInfo } }),
  };
  return resultOf(id, JSON.stringify(result));
}

/** Tasks of legacy revisions are not those of the modern one. */
function modernCapabilities(capabilities: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(capabilities).filter(([name]) => name !== 'tasks'));
}

/** A notification as it is on the stream that the request with the raw id `id` opened. */
export function onStream(message: Notification, id: string): Notification {
  const tag = `"${META.subscriptionId}":${id}`;
  if (isRecord(memberAt(message.value, REQUEST_META)))
    return again(message, withMember(message.text, REQUEST_META, tag));
  const meta = `"_meta":{${tag}}`;
  const hasParams = member(message.value, 'params') !== undefined;
  const text = hasParams
    ? withMember(message.text, ['params'], meta)
    : withMember(message.text, [], `"params":{${meta}}`);
  return again(message, text);
}

/** The end of such a stream, in good order. */
export function streamEnd(id: string): Response {
  return resultOf(id, `{"resultType":"complete","_meta":{"${META.subscriptionId}":${id}}}`);
}

/** The raw text of a member of `inputResponses`. */
export function responsesIn(text: string): ReadonlyMap<string, string> | undefined {
  const span = findPath(text, ['params', 'inputResponses'], 'last');
  if (span === undefined) return new Map();
  const value: unknown = JSON.parse(rawAt(text, span));
  if (!isRecord(value)) return undefined;
  return new Map(
    Object.entries(value).flatMap(([name, answer]) =>
      isRecord(answer) ? [[name, JSON.stringify(answer)]] : [],
    ),
  );
}
