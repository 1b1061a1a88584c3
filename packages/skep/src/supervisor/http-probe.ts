import { isObject, memberAt } from '@skep/proxy/message/json-rpc.ts';
import { NEWEST_LEGACY_VERSION } from '@skep/proxy/message/protocol-version.ts';
import type { Clock } from './clock.ts';

const REQUEST_MS = 10_000;
const END_SESSION_MS = 2_000;
const MAX_ANSWER_CHARS = 1024 * 1024;
const ID = 'skep-init-check';

export interface HttpProbeOptions {
  /** The proxied endpoint of the server. */
  readonly endpoint: string;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Between two requests: the first delay, doubled up to the longest. Milliseconds. */
  readonly delays: { readonly first: number; readonly longest: number };
}

/**
 * Sends `initialize` until it is answered (spec run-workload §6.4 step 2), then ends the session. Resolves with the
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
  const { endpoint, fetch, signal } = options;
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
          clientInfo: { name: 'skep', version: '1' },
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

/** The JSON-RPC answer of a body: JSON, or the first event that is one. */
async function answerIn(response: Response): Promise<object | undefined> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf('\n');
    const answer = asAnswer(text) ?? firstEvent(text.slice(0, end + 1));
    if (answer !== undefined || text.length > MAX_ANSWER_CHARS) return answer;
  }
  return undefined;
}

/** The data of a whole line `data: …` (HTML, server-sent events). */
function firstEvent(text: string): object | undefined {
  for (const line of text.split('\n')) {
    const answer = line.startsWith('data:') ? asAnswer(line.slice('data:'.length)) : undefined;
    if (answer !== undefined) return answer;
  }
  return undefined;
}

function asAnswer(text: string): object | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isObject(value) && value['jsonrpc'] === '2.0' && ('result' in value || 'error' in value)
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
