import autocannon from 'autocannon';

export const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'hello', count: 3, tags: ['a', 'b'] } },
});
export const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

export type Headers = Readonly<Record<string, string>>;

/** Opens a session at the endpoint; the headers that belong to it. */
export async function openSession(url: string): Promise<Headers> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const answer = await fetch(url, { method: 'POST', headers: HEADERS, body });
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
  const sorted = times.toSorted((a, b) => a - b);
  return {
    perSecond: times.length / result.duration,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
  };
}
