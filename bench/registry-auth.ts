import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import autocannon from 'autocannon';
import { jwtVerify } from 'jose';
import { CALLERS, type GuardedRegistry, startGuarded } from './registry/guarded.ts';
import { stop } from './registry/served.ts';
import type { Bench } from './row.ts';

const ROUNDS = 3;
const CONNECTIONS = 50;
const FRESH = 300;

type Headers = Readonly<Record<string, string>>;

/** Lists in full authorization, each request by the next of many callers, against servers that know no callers. */
export const registryAuthBench: Bench = async (report, { seconds }) => {
  const registry = await startGuarded();
  const url = `${registry.url}/servers?limit=100`;
  const duration = Math.max(1, seconds / 2);
  try {
    const callers = registry.tokens.map((token): Headers => ({ authorization: `Bearer ${token}` }));
    const [first = {}] = callers;
    const known = callers.map((_, caller): Headers => ({ 'x-caller': String(caller) }));
    const page = Buffer.from(
      await (await fetch(url, { headers: { ...first, 'accept-encoding': 'identity' } })).arrayBuffer(),
    );
    // Every caller is known before anything is measured.
    const tagged = await withTags(url, callers);
    const rates = await withServer('bare-server.ts', page, (bare) =>
      compare({ url, headers: callers }, { url: bare, headers: callers }, duration),
    );
    report({
      name: `registry: list for ${CALLERS} callers / bare node:http`,
      value: rates.ratio,
      unit: 'ratio',
      floor: 0.7,
    });
    const naive = await withServer('naive-server.ts', page, (base) =>
      compare({ url, headers: callers }, { url: base, headers: known }, duration),
    );
    report({
      name: 'registry: list / query and filter for each request',
      value: naive.ratio,
      unit: 'ratio',
      floor: 5,
    });
    const unchanged = await compare({ url, headers: tagged }, { url, headers: callers }, duration);
    report({ name: 'registry: 304 / 200', value: unchanged.ratio, unit: 'ratio', floor: 2 });
    const latency = await pacedLatency(url, callers, { perSecond: rates.rate / 2, seconds: duration });
    report({
      name: 'registry: p99 / p50 at half load',
      value: latency.p99 / latency.p50,
      unit: 'ratio',
      ceiling: 5,
    });
    report({
      name: 'registry: first request of a token, above its signature',
      value: await newToken(url, registry),
      unit: 'ms',
      ceiling: 1,
    });
  } finally {
    await registry.stop();
  }
};

interface Subject {
  readonly url: string;
  readonly headers: readonly Headers[];
}

/** The median of subject over baseline, in alternating rounds, and the subject's requests per second. */
async function compare(
  subject: Subject,
  baseline: Subject,
  duration: number,
): Promise<{ ratio: number; rate: number }> {
  await load(subject, 1);
  await load(baseline, 1);
  const rounds: { ratio: number; rate: number }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const base = await load(baseline, duration);
    const rate = await load(subject, duration);
    rounds.push({ ratio: rate / base, rate });
  }
  return rounds.toSorted((a, b) => a.ratio - b.ratio)[Math.floor(ROUNDS / 2)] ?? { ratio: 0, rate: 0 };
}

async function load({ url, headers }: Subject, duration: number): Promise<number> {
  const requests = headers.map((one) => ({ headers: one }));
  const result = await autocannon({ url, duration, connections: CONNECTIONS, requests });
  // 304 is no 2xx.
  const conditional = headers.some((one) => 'if-none-match' in one);
  if (result.errors > 0 || (!conditional && result.non2xx > 0))
    throw new Error(`${url}: ${result.errors} errors, ${result.non2xx} not 2xx`);
  return result.requests.average;
}

/** The headers of callers who have their page already. */
async function withTags(url: string, callers: readonly Headers[]): Promise<Headers[]> {
  const tagged: Headers[] = [];
  for (const headers of callers) {
    const response = await fetch(url, { headers: { ...headers, 'accept-encoding': 'identity' } });
    await response.arrayBuffer();
    tagged.push({ ...headers, 'if-none-match': response.headers.get('etag') ?? '' });
  }
  return tagged;
}

async function withServer<T>(file: string, page: Buffer, use: (url: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-bench-'));
  const body = path.join(folder, 'body.json');
  await writeFile(body, page);
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'registry', file), body], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = await once(child.stdout, 'data');
    return await use(`http://127.0.0.1:${String(line).trim()}/`);
  } finally {
    await stop(child);
    await rm(folder, { recursive: true });
  }
}

/** Requests that start at fixed times whether or not earlier ones are answered, so that waiting counts. */
async function pacedLatency(
  url: string,
  callers: readonly Headers[],
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<{ p50: number; p99: number }> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const started = performance.now();
  const taken: Promise<number>[] = [];
  const total = Math.floor(perSecond * seconds);
  while (taken.length < total) {
    const due = Math.floor(((performance.now() - started) / 1000) * perSecond);
    while (taken.length < Math.min(due, total))
      taken.push(once200(url, callers[taken.length % callers.length] ?? {}, agent));
    await delay(1);
  }
  const sorted = (await Promise.all(taken)).toSorted((a, b) => a - b);
  agent.destroy();
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

/** Milliseconds until the whole answer is there. */
function once200(url: string, headers: Headers, agent: http.Agent): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    http
      .get(url, { headers, agent }, (response) => {
        response.resume().on('end', () => {
          if (response.statusCode === 200) resolve(performance.now() - start);
          else reject(new Error(`${url}: status ${response.statusCode}`));
        });
      })
      .on('error', reject);
  });
}

/** Median milliseconds of requests with new tokens, less those with known tokens and the check of a signature. */
async function newToken(url: string, registry: GuardedRegistry): Promise<number> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const fresh = await registry.fresh(FRESH);
  const [first, again, signature]: [number[], number[], number[]] = [[], [], []];
  for (const token of fresh) {
    const headers = { authorization: `Bearer ${token}` };
    first.push(await once200(url, headers, agent));
    again.push(await once200(url, headers, agent));
    const start = performance.now();
    await jwtVerify(token, registry.publicKey);
    signature.push(performance.now() - start);
  }
  agent.destroy();
  return median(first) - median(again) - median(signature);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
