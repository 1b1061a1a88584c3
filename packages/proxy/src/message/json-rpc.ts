import { isRecord } from '@skep/core/json/is-record.ts';
import { judge, MAX_DEPTH } from '@skep/core/json/judge.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { outline, OUTLINED_FROM } from './outline.ts';
import {
  findElements,
  findMembers,
  findPath,
  isDeeperThan,
  onOneLine,
  rawAt,
  splice,
  type Edit,
  type Span,
} from '@skep/core/json/scan.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

interface Envelope {
  /** The message on one line, as it is or will be on the wire. */
  readonly text: string;
  /**
   * The message as its sender wrote it, parsed. Where the proxy exchanged an id, `text` has the new one. Of a large message
   * only what the proxy acts upon (outline.ts); who needs more reads `text`.
   */
  readonly value: JsonObject;
}

export interface Request extends Envelope {
  readonly kind: 'request';
  readonly method: string;
  /** The id's raw JSON text, so that `1`, `"1"` and `12345678901234567890` stay what they are. */
  readonly id: string;
  readonly idSpan: Span;
}

export interface Notification extends Envelope {
  readonly kind: 'notification';
  readonly method: string;
}

export interface Response extends Envelope {
  readonly kind: 'response';
  readonly id: string;
  readonly idSpan: Span;
  /** True for an error, false for a result. */
  readonly failed: boolean;
}

/** One JSON-RPC 2.0 message of MCP. */
export type Message = Request | Notification | Response;

/** The id that an answer to the message must have; undefined where none is due. */
export function idOf(message: Message): string | undefined {
  return message.kind === 'request' ? message.id : undefined;
}

/** What is left of a request when it has gone to the server: nothing that grows with its body. */
export type RequestHead = Pick<Request, 'id' | 'method'>;

/** Why a text is no message: not JSON at all, nested beyond reason, an array, or JSON that is not JSON-RPC 2.0. */
export type Unreadable = 'not-json' | 'too-deep' | 'batch' | 'not-json-rpc';

/** Ids, tokens and methods are kept while their request is unanswered; nobody needs longer ones. */
export const MAX_ID_CHARACTERS = 1024;
/** Messages of one array of a server that are looked at. */
const MAX_BATCH = 10_000;

const ENVELOPE = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
function isId(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}

/** The member's value, own members only: a hostile `__proto__` gives nothing away. */
export function member(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Follows own members; undefined where the path ends early. */
export function memberAt(value: unknown, path: readonly string[]): unknown {
  for (const name of path) value = member(value, name);
  return value;
}

function parse(text: string): JsonObject | Unreadable {
  if (isDeeperThan(MAX_DEPTH, text)) return 'too-deep';
  try {
    const value = parseJson(text);
    if (Array.isArray(value)) return 'batch';
    return isRecord(value) ? value : 'not-json-rpc';
  } catch {
    return 'not-json';
  }
}

/** A few megabytes of brackets or names are seconds of `JSON.parse`, so of a large text nothing is made but its outline. */
function parseLarge(text: string): JsonObject | Unreadable {
  const verdict = judge(text);
  if (verdict !== 'json') return verdict;
  if (/^\s*\[/u.test(text)) return 'batch';
  const value = outline(text);
  return isRecord(value) ? value : 'not-json-rpc';
}

/** Text to message, by the rules of JSON-RPC 2.0 §4 and §5 as MCP narrows them: the id is a string or a number. */
export function readMessage(input: string): Message | Unreadable {
  const value = input.length < OUTLINED_FROM ? parse(input) : parseLarge(input);
  if (typeof value === 'string') return value;
  if (member(value, 'jsonrpc') !== '2.0') return 'not-json-rpc';
  const text = onOneLine(input);
  const spans = findMembers(text, 0, ENVELOPE, 'exact');
  return (spans === undefined ? undefined : classify(text, value, spans)) ?? 'not-json-rpc';
}

/** The members of a batch (JSON-RPC 2.0 §6), which MCP 2025-03-26 alone allows; each is a message or is not. */
export function readBatch(input: string): readonly (Message | Unreadable)[] {
  return findElements(input, MAX_BATCH).map((span) => readMessage(rawAt(input, span)));
}

function classify(text: string, value: JsonObject, spans: ReadonlyMap<string, Span>): Message | undefined {
  const idSpan = spans.get('id');
  if (idSpan !== undefined && idSpan.end - idSpan.start > MAX_ID_CHARACTERS) return undefined;
  if (idSpan !== undefined && !isId(value['id'])) return undefined;
  const method = member(value, 'method');
  if (typeof method === 'string') {
    if (method.length > MAX_ID_CHARACTERS) return undefined;
    if (idSpan === undefined) return { kind: 'notification', text, value, method };
    return { kind: 'request', text, value, method, id: copyPiece(rawAt(text, idSpan)), idSpan };
  }
  const failed = spans.has('error');
  if (spans.has('method') || idSpan === undefined || failed === spans.has('result')) return undefined;
  return { kind: 'response', text, value, id: copyPiece(rawAt(text, idSpan)), idSpan, failed };
}

/** The raw id of a line that cannot be read but is meant as an answer; servers also log JSON that has an `id`. */
export function idMeantBy(line: string): string | undefined {
  const isMeant = ['jsonrpc', 'result', 'error'].some((name) => findPath(line, [name]) !== undefined);
  const span = isMeant ? findPath(line, ['id']) : undefined;
  return span && span.end - span.start <= MAX_ID_CHARACTERS ? rawAt(line, span) : undefined;
}

/** A piece of a text is a view of it, which would keep all of a large message for the sake of its id. */
export function copyPiece(piece: string): string {
  return piece.length < 13 ? piece : Buffer.from(piece, 'utf16le').toString('utf16le');
}

/**
 * The raw JSON text of a token of ours that came back: integers of ours, for which `7`, `"7"` and `7.0` are the same.
 * Undefined for what can be none of ours.
 */
export function ownToken(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && /^[1-9]\d{0,15}$/u.test(text) ? text : undefined;
}

/** The message under another id (raw JSON text); nothing else changes. */
export function withId<M extends Request | Response>(message: M, id: string): M {
  const { start } = message.idSpan;
  return {
    ...message,
    id,
    idSpan: { start, end: start + id.length },
    text: splice(message.text, [{ span: message.idSpan, text: id }]),
  };
}

/** The answer with other JSON text in places that are not its id; it is parsed where somebody asks for its value. */
export function withEdits(
  { kind, id, failed, idSpan, text: before }: Response,
  edits: readonly Edit[],
): Response {
  const text = splice(before, edits);
  let moved = 0;
  for (const edit of edits)
    if (edit.span.end <= idSpan.start) moved += edit.text.length - (edit.span.end - edit.span.start);
  let value: JsonObject | undefined;
  return {
    kind,
    id,
    failed,
    text,
    idSpan: { start: idSpan.start + moved, end: idSpan.end + moved },
    get value() {
      return (value ??= valueOf(text));
    },
  };
}

/** Where `path` stands in a message, if its value there is a string or a number: an id or a token. */
export function findToken(message: Message, path: readonly string[]): Span | undefined {
  return isId(memberAt(message.value, path)) ? findPath(message.text, path) : undefined;
}

/** True when the parsed message has an id or token at `path` that `findToken` cannot locate: a doubled member. */
export function isAmbiguousAt(message: Message, path: readonly string[]): boolean {
  return isId(memberAt(message.value, path)) && findPath(message.text, path) === undefined;
}

/** The message with the token at `path` replaced by raw JSON text; as it is when there is none. */
export function withToken<M extends Message>(message: M, path: readonly string[], raw: string): M {
  const span = findToken(message, path);
  return span === undefined ? message : { ...message, text: splice(message.text, [{ span, text: raw }]) };
}

/** A notification of our own making. */
export function notification(method: string, params: JsonObject): Notification {
  const value = { jsonrpc: '2.0', method, params };
  return { kind: 'notification', text: JSON.stringify(value), value, method };
}

const BEFORE_ID = '{"jsonrpc":"2.0","id":';

function response(id: string, text: string, failed: boolean): Response {
  return {
    kind: 'response',
    text,
    value: valueOf(text),
    id,
    idSpan: { start: BEFORE_ID.length, end: BEFORE_ID.length + id.length },
    failed,
  };
}

/** What `readMessage` would give for a text of our own, which may hold a large result of the server. */
function valueOf(text: string): JsonObject {
  const value = text.length < OUTLINED_FROM ? parseJson(text) : outline(text);
  return isRecord(value) ? value : {};
}

/** A result of our own making; `id` and `result` are raw JSON text. */
export function resultOf(id: string, result: string): Response {
  return response(id, `${BEFORE_ID}${id},"result":${result}}`, false);
}

/** A request of our own making; `id` is raw JSON text. */
export function requestOf(id: string, method: string, params: JsonObject): Request {
  const text = `${BEFORE_ID}${id},"method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`;
  return {
    kind: 'request',
    text,
    value: JSON.parse(text),
    method,
    id,
    idSpan: { start: BEFORE_ID.length, end: BEFORE_ID.length + id.length },
  };
}

export interface RpcFailure {
  readonly code: number;
  readonly message: string;
  readonly data?: JsonObject;
}

/** The text of an error answer; without an id the member is left out, never null (MCP 2026-07-28). */
export function errorText(id: string | undefined, failure: RpcFailure): string {
  return id === undefined
    ? `{"jsonrpc":"2.0","error":${JSON.stringify(failure)}}`
    : `${BEFORE_ID}${id},"error":${JSON.stringify(failure)}}`;
}

/** An error answer to the request with the raw id `id`. */
export function errorOf(id: string, failure: RpcFailure): Response {
  return response(id, errorText(id, failure), true);
}
