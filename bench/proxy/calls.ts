import http from 'node:http';
import autocannon from 'autocannon';

export const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'hello', count: 3, tags: ['a', 'b'] } },
});
export const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

export type Headers = Readonly<Record<string, string>>;

/** Opens a session at the endpoint, with `more` headers; those that belong to it. */
export async function openSession(url: string, more: Headers = {}): Promise<Headers> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const answer = await fetch(url, { method: 'POST', headers: { ...HEADERS, ...more }, body });
  await answer.text();
  return { 'Mcp-Session-Id': answer.headers.get('mcp-session-id') ?? '' };
}

/** For so long, or so many. */
export type Load = { readonly connections: number } & (
  | { readonly seconds: number }
  | { readonly calls: number }
);

export interface Measured {
  readonly perSecond: number;
  /** Of the time from request to answer, milliseconds. */
  readonly p99: number;
}

/** Calls one tool over so many connections, each waiting for its answer before the next. Fails when a call does. */
export async function measureCalls(url: string, headers: Headers, load: Load): Promise<Measured> {
  const times: number[] = [];
  const run = autocannon({
    url,
    method: 'POST',
    headers: { ...HEADERS, ...headers },
    body: CALL,
    connections: load.connections,
    ...('calls' in load ? { amount: load.calls } : { duration: load.seconds }),
  });
  run.on('response', (_client, _status, _bytes, time) => times.push(time));
  const result = await run;
  const lost = result.errors + result.non2xx + result.timeouts;
  if (lost > 0) throw new Error(`${lost} calls to ${url} failed`);
  return { perSecond: times.length / result.duration, p99: p99(times) };
}

export const p99 = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;

export interface Endpoint {
  readonly url: string;
  readonly headers: Headers;
}

const CALLS_A_TURN = 200;

/**
 * Milliseconds of every call to each of two endpoints, over one connection and one after another. The two take short turns, so
 * that what else the machine does meets both; autocannon takes a second to end, and counts whole milliseconds.
 */
export async function timesInTurns(
  first: Endpoint,
  second: Endpoint,
  turns: number,
): Promise<readonly [readonly number[], readonly number[]]> {
  const agent = new http.Agent({ keepAlive: true });
  const times: [number[], number[]] = [[], []];
  try {
    // The first turn warms up what calls, and does not count.
    for (let turn = -1; turn < turns; turn += 1) {
      for (const [at, endpoint] of [first, second].entries()) {
        for (let call = 0; call < CALLS_A_TURN; call += 1) {
          const time = await timeOf(endpoint, agent);
          if (turn >= 0) times[at]?.push(time);
        }
      }
    }
    return times;
  } finally {
    agent.destroy();
  }
}

const timeOf = ({ url, headers }: Endpoint, agent: http.Agent): Promise<number> =>
  new Promise((resolve, reject) => {
    const before = performance.now();
    const options = { method: 'POST', headers: { ...HEADERS, ...headers }, agent };
    const request = http.request(url, options, (reply) => {
      reply.resume().once('end', () => {
        if (reply.statusCode === 200) resolve(performance.now() - before);
        else reject(new Error(`a call to ${url} was answered with ${reply.statusCode}`));
      });
    });
    request.once('error', reject);
    request.end(CALL);
  });
