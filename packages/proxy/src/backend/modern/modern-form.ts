import { isRecord } from '@skep/core/json/is-record.ts';
import { allMembers, findMembers, findPath, rawAt, splice, type Span } from '@skep/core/json/scan.ts';
import { META, REQUEST_META, withMember } from '../../message/envelope.ts';
import {
  copyPiece,
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
/** What one round of a call may ask for. */
const MAX_QUESTIONS = 100;
const REQUIRED = new Set(['inputRequests', 'requestState']);
const QUESTION = new Set(['method', 'params']);
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

/** What `inputResponses` brings under those names, as raw text; undefined where that is no object. */
export function responsesIn(
  text: string,
  names: ReadonlySet<string>,
): ReadonlyMap<string, string> | undefined {
  const span = findPath(text, ['params', 'inputResponses'], 'last');
  if (span === undefined) return new Map();
  if (text[span.start] !== '{') return undefined;
  const found = findMembers(text, span.start, names, 'last') ?? new Map<string, Span>();
  const raw = [...found].map(([name, at]) => [name, rawAt(text, at)] as const);
  return new Map(raw.filter(([, answer]) => answer.startsWith('{')));
}

/** What a result of a modern server asks for before the call is made again. */
export interface Required {
  /** By name, the members `method` and `params` of each as raw text. */
  readonly questions: ReadonlyMap<string, string>;
  /** Raw text of a string. */
  readonly state: string | undefined;
}

/** What `reply`, whose result is `input_required`, asks for; undefined where something of it is no question, or too much. */
export function requiredBy({ text }: Response): Required | undefined {
  const result = findPath(text, ['result'], 'last');
  const required = result && findMembers(text, result.start, REQUIRED, 'last');
  const asked = required?.get('inputRequests');
  const state = required?.get('requestState');
  const all = asked === undefined ? new Map<string, Span>() : allMembers(text, asked.start, MAX_QUESTIONS);
  const questions = new Map<string, string>();
  for (const [name, { start }] of all ?? []) {
    const question = questionAt(text, start);
    if (question !== undefined) questions.set(name, question);
  }
  if (questions.size !== all?.size) return undefined;
  return { questions, state: state && text[state.start] === '"' ? copyPiece(rawAt(text, state)) : undefined };
}

function questionAt(text: string, at: number): string | undefined {
  const found = findMembers(text, at, QUESTION, 'last');
  const [method, params] = [found?.get('method'), found?.get('params')];
  if (method === undefined || text[method.start] !== '"') return undefined;
  const given = params && text[params.start] === '{' ? rawAt(text, params) : '{}';
  return `"method":${rawAt(text, method)},"params":${given}`;
}
