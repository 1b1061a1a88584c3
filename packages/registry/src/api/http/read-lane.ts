import type { IncomingMessage, ServerResponse } from 'node:http';
import { bearerToken } from '@skep/auth/resource/bearer.ts';
import { ANONYMOUS, type Authority } from '../../access/authority.ts';
import { RESERVED_NAMES } from '../../config/shape.ts';
import type { AnswersInFlight } from './answers-in-flight.ts';
import { chooseEncoding } from './encodings.ts';
import { noneMatch } from './entity-tag.ts';
import { authorizationOf } from './identify.ts';
import { KeptReads, type Read } from './kept-reads.ts';
import type { ObservedRequest, WatchAnswer } from './observe-requests.ts';
import type { RawParameters } from '../route/parameter.ts';
import { hasDotSegment } from './request-path.ts';
import type { Answer, ApiContext, Call, Route } from '../route/route.ts';
import type { SignIn } from '../sign-in/sign-in.ts';

export interface ReadLaneParts {
  readonly context: ApiContext;
  /** The router encodes answers for callers who ask for it. */
  readonly encodes: boolean;
  /** Headers that every answer depends on. */
  readonly vary: string;
  /** The id of a request, as everywhere else. */
  readonly idOf: (request: IncomingMessage) => string;
  readonly inFlight: AnswersInFlight;
  /** Tells the observers of an answer when it is over; undefined when there are none. */
  readonly watch: WatchAnswer | undefined;
}

/** Answers a request, or leaves it, untouched, to the router. */
export type ReadLane = (request: IncomingMessage, response: ServerResponse) => boolean;

const NO_BODY = Buffer.alloc(0);
const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * The short way for what a registry is asked all day: a well-formed read of the consumer API that succeeds, from a caller
 * who is known already. It calls the same handlers as the router with the same authority and writes the same headers,
 * but builds no framework request, which costs more than the read itself. Whatever is out of the ordinary (other methods,
 * a body, unusual escapes, a token not seen before, any refusal or error) is left to the router, which decides alone.
 */
export function readLane(
  routes: readonly Route[],
  { context, encodes, vary, idOf, inFlight, watch }: ReadLaneParts,
): ReadLane {
  const patterns = routes
    .filter(({ method, access }) => method === 'GET' && access === 'registry')
    .flatMap(compile);
  const kept = new KeptReads();
  const readFor = (request: IncomingMessage, authority: Authority): Read | undefined => {
    const { url = '', socket: connection } = request;
    const snapshot = context.snapshot();
    const known = kept.find(snapshot, authority, url);
    if (known !== undefined) return known;
    const read = readOf(patterns, context, {
      url,
      authority,
      connection,
      vary: encodes ? `${vary}, Accept-Encoding` : vary,
    });
    // A publish meanwhile is impossible: nothing here waits.
    if (read !== undefined) kept.keep(snapshot, authority, { target: url, read });
    return read;
  };
  return (request, response) => {
    const startedAt = watch === undefined ? 0 : performance.now();
    if (!isPlain(request) || (encodes && wantsEncoding(request))) return false;
    const authority = authorityOf(context.signIn(), request);
    const read = authority && readFor(request, authority);
    if (authority === undefined || read === undefined) return false;
    const id = idOf(request);
    const responseBytes = write(request, response, { id, read, inFlight });
    if (watch !== undefined) {
      const { route: row, pattern, path } = read;
      watch(observedRequest(request, { id, authority, path }), response, {
        row,
        pattern,
        responseBytes,
        startedAt,
      });
    }
    return true;
  };
}

function isPlain({ method, headers }: IncomingMessage): boolean {
  return (
    (method === 'GET' || method === 'HEAD') &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined &&
    headers.expect === undefined
  );
}

function wantsEncoding({ headers }: IncomingMessage): boolean {
  const accepted = headers['accept-encoding'];
  return accepted !== undefined && chooseEncoding(accepted) !== undefined;
}

interface Asked extends Pick<Call, 'authority' | 'connection'> {
  readonly vary: string;
  readonly url: string;
}

/** Asks the handler; undefined for everything but a success with a tag. */
function readOf(
  patterns: readonly Pattern[],
  context: ApiContext,
  { url, authority, connection, vary }: Asked,
): Read | undefined {
  const target = targetOf(url);
  const match = target && matchOf(patterns, target.segments);
  if (target === undefined || match === undefined) return undefined;
  const { route, pattern, path } = match;
  const answer = answerOf(route, context, {
    authority,
    connection,
    path,
    query: target.query,
    body: NO_BODY,
  });
  if (answer?.etag === undefined || answer.body === undefined) return undefined;
  const content = answer.body();
  const pieces = typeof content === 'string' ? [Buffer.from(content)] : content;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const { etag } = answer;
  const headers = ['x-request-id', '', 'vary', vary, 'etag', etag, ...COMMON_HEADERS];
  const withBody = [...headers, 'content-type', JSON_TYPE, 'content-length', String(length)];
  return { route, pattern, path, etag, headers, withBody, pieces, length };
}

interface Target {
  readonly segments: readonly string[];
  readonly query: RawParameters;
}

/** The parts of a plain request target; undefined for anything the router should look at. */
function targetOf(url: string): Target | undefined {
  if (!url.startsWith('/') || url.includes('#') || hasDotSegment(url)) return undefined;
  const mark = url.indexOf('?');
  const query = plainQuery(mark === -1 ? '' : url.slice(mark + 1));
  if (query === undefined) return undefined;
  return { segments: (mark === -1 ? url : url.slice(0, mark)).slice(1).split('/'), query };
}

/** Names given once and values without escapes; that is how clients write limits, cursors and versions. */
function plainQuery(text: string): RawParameters | undefined {
  if (text === '') return {};
  if (!/^[\w.~-]+=[\w.~:-]*(?:&[\w.~-]+=[\w.~:-]*)*$/.test(text)) return undefined;
  const values = new Map<string, string>();
  for (const pair of text.split('&')) {
    const mark = pair.indexOf('=');
    const name = pair.slice(0, mark);
    if (values.has(name)) return undefined;
    values.set(name, pair.slice(mark + 1));
  }
  return Object.fromEntries(values);
}

interface Pattern {
  readonly route: Route;
  readonly pattern: string;
  /** A literal segment, or the name of a parameter. */
  readonly segments: readonly (string | { readonly parameter: string })[];
}

function compile(route: Route): Pattern[] {
  return route.paths.map((pattern) => ({
    route,
    pattern,
    segments: pattern
      .slice(1)
      .split('/')
      .map((segment) => {
        const parameter = /^\{(\w+)\}$/.exec(segment)?.[1];
        return parameter === undefined ? segment : { parameter };
      }),
  }));
}

interface Match extends Pattern {
  readonly path: RawParameters;
}

/** The one pattern that fits; where a literal and a parameter both do, the router knows which one counts. */
function matchOf(patterns: readonly Pattern[], segments: readonly string[]): Match | undefined {
  let found: Pattern | undefined;
  for (const candidate of patterns) {
    if (!fits(candidate, segments)) continue;
    if (found !== undefined) return undefined;
    found = candidate;
  }
  const path = found === undefined ? undefined : parametersOf(found, segments);
  return found === undefined || path === undefined ? undefined : { ...found, path };
}

function fits({ segments: wanted }: Pattern, segments: readonly string[]): boolean {
  if (wanted.length !== segments.length) return false;
  for (let at = 0; at < wanted.length; at += 1) {
    const one = wanted[at];
    if (typeof one === 'string' && one !== segments[at]) return false;
  }
  return true;
}

const LONGEST = 2048;

function parametersOf({ segments: wanted }: Pattern, segments: readonly string[]): RawParameters | undefined {
  const path: Record<string, string> = {};
  for (const [at, one] of wanted.entries()) {
    if (typeof one === 'string') continue;
    const text = decoded(segments[at] ?? '');
    if (text === undefined || text === '') return undefined;
    // The root form must not capture the first segments of other endpoints.
    if (at === 0 && RESERVED_NAMES.has(text)) return undefined;
    path[one.parameter] = text;
  }
  return path;
}

function decoded(segment: string): string | undefined {
  if (segment.length > LONGEST) return undefined;
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** Whoever can be told apart without waiting. */
function authorityOf(door: SignIn, request: IncomingMessage): Authority | undefined {
  if (door.kind === 'open') return ANONYMOUS;
  const bearer = bearerToken(authorizationOf(request.rawHeaders));
  // Only a token that was accepted before: checking one is the router's business, and it must happen once.
  const known = bearer.kind === 'token' ? door.verifier.known(bearer.token) : undefined;
  return known?.kind === 'identity' ? door.authorityOf(known.identity) : undefined;
}

/** A refusal is the router's to tell: it runs the handler again, and nothing was written. */
function answerOf(route: Route, context: ApiContext, call: Call): Answer | undefined {
  try {
    const answer = route.handle(context, call);
    if (!(answer instanceof Promise)) return answer;
    // The router joins it, and tells how it ends.
    answer.catch(() => undefined);
    return undefined;
  } catch {
    return undefined;
  }
}

interface Seen {
  readonly id: string;
  readonly authority: Authority;
  readonly path: RawParameters;
}

function observedRequest(raw: IncomingMessage, { id, authority, path }: Seen): ObservedRequest {
  return {
    id,
    raw,
    method: raw.method ?? 'GET',
    socket: raw.socket,
    headers: raw.headers,
    params: path,
    body: undefined,
    authority,
    failure: undefined,
    facts: undefined,
    span: undefined,
  };
}

const COMMON_HEADERS = Object.entries({
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'private, no-cache',
}).flat();

interface Writing {
  readonly id: string;
  readonly read: Read;
  readonly inFlight: AnswersInFlight;
}

/** Returns the bytes of the body. One array of headers is what `node:http` writes without looking at each twice. */
function write(request: IncomingMessage, response: ServerResponse, { id, read, inFlight }: Writing): number {
  const { etag, pieces, length } = read;
  if (noneMatch(request.headers['if-none-match'], etag)) {
    response.writeHead(304, withId(read.headers, id)).end();
    return 0;
  }
  response.writeHead(200, withId(read.withBody, id));
  const [only] = pieces;
  if (request.method === 'HEAD') response.end();
  else if (pieces.length === 1 && only !== undefined) response.end(only);
  else {
    response.cork();
    for (const piece of pieces) response.write(piece);
    response.end();
    response.uncork();
  }
  if (request.method !== 'HEAD') inFlight.add(response, pieces);
  return length;
}

/** `writeHead` reads the array at once and keeps nothing of it, so every answer may use the same one. */
function withId(headers: string[], id: string): string[] {
  headers[1] = id;
  return headers;
}
