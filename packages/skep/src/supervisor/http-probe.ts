import { isRecord } from '@skep/core/json/is-record.ts';
import { PASS_HEADER } from '@skep/proxy/call/pass.ts';
import { memberAt } from '@skep/proxy/message/json-rpc.ts';
import { judge } from '@skep/core/json/judge.ts';
import { outline } from '@skep/proxy/message/outline.ts';
import { NEWEST_LEGACY_VERSION } from '@skep/proxy/message/protocol-version.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { MAX_LISTING_CHARS, type AskServer } from './list-tools.ts';

const REQUEST_MS = 10_000;
const END_SESSION_MS = 2_000;
const MAX_REDIRECTS = 3;
/** Redirects that keep method and body (RFC 9110 §15.4). */
const SAME_METHOD = new Set([307, 308]);
/** Characters of one answer that are read: a server that writes more, or bit by bit, holds nobody up. */
const MAX_ANSWER_CHARS = { greeting: 256 * 1024, other: MAX_LISTING_CHARS } as const;
/** Of a whole line `data: …` (HTML, server-sent events). */
const DATA = 'data:';
const ID = 'skep-init-check';
const JSON_RPC = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Where the server is asked. */
export interface HttpServer {
  /** The proxied endpoint of the server. */
  readonly endpoint: string;
  /** See `Proxy.pass`. */
  readonly pass?: string | undefined;
  readonly fetch: typeof fetch;
}

export interface HttpProbeOptions extends HttpServer {
  /** Skep's own. */
  readonly version: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Between two requests: the first delay, doubled up to the longest. Milliseconds. */
  readonly delays: { readonly first: number; readonly longest: number };
}

/** What a server answered `initialize` with. */
export interface HttpGreeting {
  /** Undefined where the answer has none. */
  readonly result: unknown;
  /** Who asks ends it with `endSession`. */
  readonly session: string | undefined;
}

/**
 * Sends `initialize` until it is answered (docs/behaviour/run.md#ready); rejects only when the signal aborts. Sessions of
 * answers that are none are ended.
 */
export async function untilHttpAnswer(options: HttpProbeOptions): Promise<HttpGreeting> {
  const { clock, delays, signal } = options;
  for (let delay = delays.first; ; delay = Math.min(delay * 2, delays.longest)) {
    const greeting = await probe(options);
    if (greeting !== undefined) return greeting;
    await clock.sleep(delay, signal);
  }
}

/** Asks a server that was greeted, in the session that it opened. */
export function askOverHttp({ result, session }: HttpGreeting, server: HttpServer): AskServer {
  const version = memberAt(result, ['protocolVersion']);
  const headers = {
    ...JSON_RPC,
    ...(session === undefined ? {} : { 'mcp-session-id': session }),
    ...(typeof version === 'string' && /^[\w.-]{1,64}$/.test(version)
      ? { 'mcp-protocol-version': version }
      : {}),
  };
  const send = (message: object, signal: AbortSignal): Promise<Response> =>
    request(server, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      signal,
    });
  let announced: Promise<unknown> | undefined;
  return async (method, params, signal) => {
    announced ??= send({ method: 'notifications/initialized' }, signal).then(({ body }) => body?.cancel());
    await announced;
    const response = await send({ id: ID, method, params }, signal);
    return (await answerIn(response, MAX_ANSWER_CHARS.other)) ?? '';
  };
}

/** The check should not leave a session behind in a server that counts them; one that does not answer keeps it. */
export async function endSession(
  session: string,
  { signal, ...server }: HttpServer & { readonly signal: AbortSignal },
): Promise<void> {
  try {
    const response = await request(server, {
      method: 'DELETE',
      headers: { 'mcp-session-id': session },
      signal: AbortSignal.any([signal, AbortSignal.timeout(END_SESSION_MS)]),
    });
    await response.body?.cancel();
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Error)) throw error;
  }
}

/** The server's answer; undefined for a refused connection, a reset, a slow answer or one that is not MCP's. */
async function probe(options: HttpProbeOptions): Promise<HttpGreeting | undefined> {
  const { version, signal } = options;
  try {
    const response = await request(options, {
      method: 'POST',
      headers: JSON_RPC,
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: ID,
        method: 'initialize',
        params: {
          protocolVersion: NEWEST_LEGACY_VERSION,
          capabilities: {},
          clientInfo: { name: 'skep', version },
        },
      }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
    });
    const answer = await answerIn(response, MAX_ANSWER_CHARS.greeting);
    const session = response.headers.get('mcp-session-id') ?? undefined;
    const result = answer === undefined ? undefined : memberAt(outline(answer), ['result']);
    // A server that wants to know who asks first is up; a failing gateway may be our own proxy's word.
    const isUp =
      response.status === 401 || response.status === 403 || (response.status < 500 && answer !== undefined);
    if (isUp) return { result, session };
    if (session !== undefined) await endSession(session, options);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/**
 * Asks the proxied server, also where it sends whoever asks to another of its paths with method and body. Nowhere else: a
 * confined server would have this process call whom it cannot reach itself.
 */
type Asking = Omit<RequestInit, 'headers'> & { readonly headers: Readonly<Record<string, string>> };

async function request({ endpoint, pass, fetch }: HttpServer, init: Asking): Promise<Response> {
  const shown = pass === undefined ? {} : { [PASS_HEADER]: pass };
  let url = endpoint;
  for (let redirects = 0; ; redirects += 1) {
    const response = await fetch(url, {
      ...init,
      headers: { ...init.headers, ...shown },
      redirect: 'manual',
    });
    const to = SAME_METHOD.has(response.status) ? response.headers.get('location') : null;
    const next = to === null ? null : URL.parse(to, url);
    const isOwn = next !== null && next.origin === URL.parse(endpoint)?.origin;
    if (!isOwn || redirects === MAX_REDIRECTS) return response;
    await response.body?.cancel();
    url = next.href;
  }
}

/** The JSON-RPC answer of a body: the first event that is one, or all of it. Every line is looked at once, when it is complete. */
async function answerIn(response: Response, maxChars: number): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let [text, line] = ['', ''];
  for await (const chunk of response.body ?? []) {
    const [rest = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
    line += rest;
    for (const next of more) {
      const data = line.startsWith(DATA) ? line.slice(DATA.length) : undefined;
      if (data !== undefined && isAnswer(data)) return data;
      text += `${line}\n`;
      line = next;
    }
    if (text.length + line.length > maxChars) return undefined;
  }
  return isAnswer(text + line) ? text + line : undefined;
}

/** Also an error without an id is an answer. Nothing is made of what is nested beyond reason. */
function isAnswer(text: string): boolean {
  const value = judge(text) === 'json' ? outline(text) : undefined;
  return isRecord(value) && value['jsonrpc'] === '2.0' && ('result' in value || 'error' in value);
}
