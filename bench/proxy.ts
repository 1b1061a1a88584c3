import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import autocannon from 'autocannon';
import type { Bench } from './row.ts';

const folder = path.join(import.meta.dirname, 'proxy');
const ECHO = [process.execPath, path.join(folder, 'echo-server.ts')];
const ROUNDS = 3;
const CONNECTIONS = 32;

const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'hello', count: 3, tags: ['a', 'b'] } },
});
const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

/** Calls through the proxy against a bare HTTP-to-stdio loop before the same server; each is a process of its own. */
export const proxyBench: Bench = async (report, { seconds }) => {
  await using baseline = await started('bare-loop.ts');
  await using subject = await started('skep-proxy.ts');
  const session = await initialize(subject.url);
  const ratios: number[] = [];
  const added: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const bare = await callsPerSecond(baseline.url, {}, seconds);
    const proxied = await callsPerSecond(subject.url, session, seconds);
    ratios.push(proxied / bare);
    const bareMs = await p50Ms(baseline.url, {}, seconds);
    added.push((await p50Ms(subject.url, session, seconds)) - bareMs);
  }
  report({
    name: `proxy: stdio calls at ${CONNECTIONS} connections, against a bare loop`,
    value: median(ratios),
    unit: 'ratio',
    floor: 0.5,
  });
  report({ name: 'proxy: p50 added at one connection', value: median(added), unit: 'ms', ceiling: 0.3 });
};

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const started = async (program: string): Promise<AsyncDisposable & { readonly url: string }> => {
  const args = [path.join(folder, program), ...ECHO];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  return {
    url: String(url),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
};

type Headers = Readonly<Record<string, string>>;

const initialize = async (url: string): Promise<Headers> => {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const answer = await fetch(url, { method: 'POST', headers: HEADERS, body });
  await answer.text();
  return { 'Mcp-Session-Id': answer.headers.get('mcp-session-id') ?? '' };
};

const callsPerSecond = async (url: string, headers: Headers, seconds: number): Promise<number> => {
  const result = await autocannon({
    url,
    method: 'POST',
    headers: { ...HEADERS, ...headers },
    body: CALL,
    connections: CONNECTIONS,
    duration: seconds,
  });
  const lost = result.errors + result.non2xx + result.timeouts;
  if (lost > 0) throw new Error(`${lost} calls to ${url} failed`);
  return result.requests.average;
};

/** autocannon counts whole milliseconds, so one connection is timed here. */
const p50Ms = async (url: string, headers: Headers, seconds: number): Promise<number> => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  const end = performance.now() + seconds * 500;
  try {
    while (performance.now() < end) {
      const before = performance.now();
      await call(url, headers, agent);
      times.push(performance.now() - before);
    }
  } finally {
    agent.destroy();
  }
  return median(times);
};

const call = (url: string, headers: Headers, agent: http.Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = http.request(
      url,
      { method: 'POST', headers: { ...HEADERS, ...headers }, agent },
      (reply) => {
        reply.resume().once('end', () => resolve());
      },
    );
    request.once('error', reject);
    request.end(CALL);
  });
