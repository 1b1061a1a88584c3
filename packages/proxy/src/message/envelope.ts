import { cutMembers, findMembers, findPath, rawAt, splice } from '@skep/core/json/scan.ts';
import {
  member,
  memberAt,
  type JsonObject,
  type Message,
  type Notification,
  type Request,
} from './json-rpc.ts';
import { MODERN_VERSION } from './protocol-version.ts';

const PREFIX = 'io.modelcontextprotocol/';

/** Members of `_meta` that MCP 2026-07-28 keeps for itself. */
export const META = {
  version: `${PREFIX}protocolVersion`,
  capabilities: `${PREFIX}clientCapabilities`,
  clientInfo: `${PREFIX}clientInfo`,
  logLevel: `${PREFIX}logLevel`,
  serverInfo: `${PREFIX}serverInfo`,
  subscriptionId: `${PREFIX}subscriptionId`,
} as const;

export const REQUEST_META = ['params', '_meta'];
export const SUBSCRIPTION_ID = [...REQUEST_META, META.subscriptionId];

const META_ALONE: ReadonlySet<string> = new Set(['_meta']);
const ENVELOPE: ReadonlySet<string> = new Set([
  META.version,
  META.capabilities,
  META.clientInfo,
  META.logLevel,
]);
/** What a client adds when it sends a request again with what the server had asked for. */
const RETRY: ReadonlySet<string> = new Set(['inputResponses', 'requestState']);

/** True for a message that says itself that it is of the modern revision, as all modern requests do. */
export function isEnveloped(message: Message): boolean {
  return memberAt(message.value, [...REQUEST_META, META.version]) !== undefined;
}

/** The request as a server of a legacy revision knows it: without what only modern ones have. */
export function withoutEnvelope(request: Request): Request {
  const params = findPath(request.text, ['params']);
  if (params === undefined) return request;
  const bare = cutMembers(request.text, params.start, RETRY);
  const text = withOneMeta({ ...request, text: bare }) ?? bare;
  const meta = findPath(text, REQUEST_META);
  return again(request, meta === undefined ? text : cutMembers(text, meta.start, ENVELOPE));
}

/** The request as a modern server wants it; what its `_meta` holds otherwise stays. */
export function withEnvelope(request: Request, envelope: JsonObject): Request {
  return withMeta(request, { [META.version]: MODERN_VERSION, ...envelope }, ENVELOPE);
}

/** The request, or notification, with these members in its `_meta`, in the place of all that are named there. */
export function withMeta<M extends Request | Notification>(
  request: M,
  members: JsonObject,
  instead: ReadonlySet<string>,
): M {
  const meta = JSON.stringify(members);
  const one = withOneMeta(request);
  const given = one === undefined ? undefined : findPath(one, REQUEST_META);
  if (one !== undefined && given !== undefined) {
    const bare = cutMembers(one, given.start, instead);
    return again(request, withMember(bare, REQUEST_META, meta.slice(1, -1)));
  }
  const inner = `"_meta":${meta}`;
  const hasParams = member(request.value, 'params') !== undefined;
  const text = hasParams
    ? withMember(request.text, ['params'], inner)
    : withMember(request.text, [], `"params":{${inner}}`);
  return again(request, text);
}

/**
 * The text with one `_meta`; undefined where it has none, as most have. Of several the last counts, as in `JSON.parse`: whoever
 * took another one would hear the client say what is not its to say.
 */
function withOneMeta({ text, value }: Request | Notification): string | undefined {
  // The value is as the client wrote it, and the text may have been changed since.
  if (memberAt(value, REQUEST_META) === undefined && !text.includes('_meta"')) return undefined;
  const params = findPath(text, ['params']);
  const last = findPath(text, REQUEST_META, 'last');
  if (params === undefined || last === undefined || findPath(text, REQUEST_META) !== undefined) return text;
  return withMember(cutMembers(text, params.start, META_ALONE), ['params'], `"_meta":${rawAt(text, last)}`);
}

/** A message with another text, whose id stands where it stands there. */
function again<M extends Request | Notification>(request: M, text: string): M {
  if (request.kind === 'notification') return { ...request, text };
  const idSpan = findMembers(text, 0, new Set(['id']))?.get('id');
  return idSpan === undefined ? request : { ...request, text, idSpan };
}

/** `text` with `raw` (one or more members) put first into the object that `path` leads to; as it is where that is none. */
export function withMember(text: string, path: readonly string[], raw: string): string {
  const span = path.length === 0 ? { start: text.indexOf('{'), end: text.length } : findPath(text, path);
  if (span === undefined || text[span.start] !== '{') return text;
  const at = span.start + 1;
  const isEmpty = /\s*\}/uy;
  isEmpty.lastIndex = at;
  return splice(text, [{ span: { start: at, end: at }, text: isEmpty.test(text) ? raw : `${raw},` }]);
}

/** What a modern message says in its `_meta` under one of the names above. */
export function inMeta(message: Message, name: string): unknown {
  return member(memberAt(message.value, REQUEST_META), name);
}
