import { isRecord } from '@skep/core/json/is-record.ts';
import { memberAt } from '@skep/proxy/message/json-rpc.ts';
import { judge } from '@skep/core/json/judge.ts';
import { outline } from '@skep/proxy/message/outline.ts';
import { NEWEST_LEGACY_VERSION } from '@skep/proxy/message/protocol-version.ts';
import type { Clock } from '@skep/core/time/clock.ts';

const REQUEST_MS = 10_000;
const END_SESSION_MS = 2_000;
/** Characters of one answer that are read: a server that writes more, or bit by bit, holds nobody up. */
const MAX_ANSWER_CHARS = 256 * 1024;
/** Of a whole line `data: …` (HTML, server-sent events). */
const DATA = 'data:';
const ID = 'skep-init-check';

export interface HttpProbeOptions {
  /** The proxied endpoint of the server. */
  readonly endpoint: string;
  readonly fetch: typeof fetch;
  /** Skep's own. */
  readonly version: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Between two requests: the first delay, doubled up to the longest. Milliseconds. */
  readonly delays: { readonly first: number; readonly longest: number };
}

/**
 * Sends `initialize` until it is answered (docs/behaviour/run.md#ready), then ends the session. Resolves with the
 * server's `serverInfo`, undefined where the answer has none; rejects only when the signal aborts.
 */
export async function untilHttpAnswer(options: HttpProbeOptions): Promise<unknown> {
  const { clock, delays, signal } = options;
  for (let delay = delays.first; ; delay = Math.min(delay * 2, delays.longest)) {
    const answer = await probe(options);
    if (answer !== undefined) return memberAt(answer, ['result', 'serverInfo']);
    await clock.sleep(delay, signal);
  }
}

/** The server's answer; undefined for a refused connection, a reset, a slow answer or one that is not MCP's. */
async function probe(options: HttpProbeOptions): Promise<object | undefined> {
  const { endpoint, fetch, version, signal } = options;
  try {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
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
    const answer = await answerIn(response);
    const session = response.headers.get('mcp-session-id');
    if (session !== null) await endSession(session, options);
    // A server that wants to know who asks first is up; a failing gateway may be our own proxy's word.
    if (response.status === 401 || response.status === 403) return answer ?? {};
    return response.status < 500 ? answer : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** The JSON-RPC answer of a body: the first event that is one, or all of it. Every line is looked at once, when it is complete. */
async function answerIn(response: Response): Promise<object | undefined> {
  const decoder = new TextDecoder();
  let [text, line] = ['', ''];
  for await (const chunk of response.body ?? []) {
    const [rest = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
    line += rest;
    for (const next of more) {
      const answer = line.startsWith(DATA) ? asAnswer(line.slice(DATA.length)) : undefined;
      if (answer !== undefined) return answer;
      text += `${line}\n`;
      line = next;
    }
    if (text.length + line.length > MAX_ANSWER_CHARS) return undefined;
  }
  return asAnswer(text + line);
}

/** Also an error without an id is an answer. Nothing is made of what is nested beyond reason. */
function asAnswer(text: string): object | undefined {
  const value = judge(text) === 'json' ? outline(text) : undefined;
  return isRecord(value) && value['jsonrpc'] === '2.0' && ('result' in value || 'error' in value)
    ? value
    : undefined;
}

/** The check should not leave a session behind in a server that counts them; one that does not answer keeps it. */
async function endSession(
  session: string,
  { endpoint, fetch, signal }: Pick<HttpProbeOptions, 'endpoint' | 'fetch' | 'signal'>,
): Promise<void> {
  try {
    const response = await fetch(endpoint, {
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
