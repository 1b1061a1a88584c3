import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { CALL, HEADERS, measureCalls, openSession, type Headers } from './proxy/calls.ts';
import { ECHO } from './proxy/echo.ts';
import type { Held } from './proxy/measured.ts';
import { started } from './proxy/started.ts';

// Clients come, call, listen, break off and go for SKEP_TEST_SOAK minutes (`npm run test:soak`; two hours). What the proxies hold
// after each part of it, with all garbage collected, has to be flat: a line through the figures does not rise. With
// SKEP_TEST_SOAK_CALLS they make so many calls instead, as fast as these are answered.

const MINUTES = Number(process.env['SKEP_TEST_SOAK'] ?? 120);
/** Each client waits so long after each turn, so that other work on the machine goes on beside it. */
const PAUSE_MS = Number(process.env['SKEP_TEST_SOAK_PAUSE_MS'] ?? 0);
const CALLS = Number(process.env['SKEP_TEST_SOAK_CALLS'] ?? 0);
const CONNECTIONS = 32;
const SAMPLES = 24;
const WORKERS = 8;
/** Of the samples: what is compiled and cached at first does not count. */
const WARM_UP = 6;
/** By the line, over all of it: of the heap a share of what there is, of descriptors so many. */
const MAX_GROWTH = { heap: 0.04, outside: 0.1, descriptors: 3 };
/** Until connections that nobody uses are closed. */
const SETTLES_MS = 6_000;

interface Subject {
  readonly name: string;
  readonly url: string;
  readonly headers: Headers;
  readonly child: ChildProcess;
}

const folder = mkdtempSync(path.join(tmpdir(), 'skep-soak-'));

async function subject(name: string, program: string, args: readonly string[]): Promise<Subject> {
  const at = (file: string): string => path.join(import.meta.dirname, 'proxy', file);
  const child = fork(at(program), args, {
    execArgv: ['--expose-gc', '--import', at('measured.ts')],
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  if (child.stdout === null) throw new TypeError('a program without output');
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const [url = '', more = ''] = line.split(' ');
  const headers: Headers = more === '' || more.startsWith('http') ? {} : { Authorization: `Bearer ${more}` };
  return { name, url, headers, child };
}

async function held({ child }: Subject): Promise<Held> {
  child.send('measure');
  const [answer] = (await once(child, 'message')) as [Held];
  return answer;
}

/** One exchange; `leaves` breaks it off as soon as it has been sent. Whatever comes is good but silence. */
function exchange(url: string, options: http.RequestOptions, body: string, leaves = false): Promise<void> {
  return new Promise((resolve) => {
    const request = http.request(url, options, (reply) => reply.resume().once('close', () => resolve()));
    request.once('error', () => resolve());
    request.end(body, () => void (leaves && request.destroy()));
  });
}

const LIST = JSON.stringify({ jsonrpc: '2.0', id: 'l', method: 'tools/list' });
const MODERN = {
  headers: { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'echo' },
  body: CALL.replace(
    '"name"',
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name"',
  ),
};

/** What clients do, by turns; calls for the most part. */
async function act({ url, headers }: Subject, session: Headers, turn: number, agent: http.Agent): Promise<void> {
  const post = { method: 'POST', agent, headers: { ...HEADERS, ...headers, ...session } };
  if (turn % 40 === 7) {
    const own = await openSession(url, headers);
    await exchange(url, { ...post, headers: { ...post.headers, ...own } }, CALL);
    await exchange(url, { method: 'DELETE', agent, headers: { ...headers, ...own } }, '');
  } else if (turn % 40 === 13) {
    const listening = { method: 'GET', headers: { ...headers, ...session, Accept: 'text/event-stream' } };
    await exchange(url, listening, '', true);
  } else if (turn % 40 === 19) await exchange(url, { ...post, agent: false }, CALL, true);
  else if (turn % 40 === 23) await exchange(url, post, `[${CALL}]`);
  else if (turn % 40 === 29) await exchange(url, post, '{"jsonrpc":');
  else if (turn % 40 === 31) await exchange(url, { ...post, headers: { ...post.headers, Authorization: 'x' } }, CALL);
  else if (turn % 40 === 37) await exchange(url, { ...post, headers: { ...HEADERS, ...headers, ...MODERN.headers } }, MODERN.body);
  else await exchange(url, post, turn % 10 === 5 ? LIST : CALL);
} // prettier-ignore

/** Until then; gives back how many turns there were. */
async function load(subjects: readonly Subject[], until: number): Promise<number> {
  let turns = 0;
  const agent = new http.Agent({ keepAlive: true });
  const sessions = new Map<Subject, Headers>();
  for (const one of subjects) sessions.set(one, await openSession(one.url, one.headers));
  const work = async (): Promise<void> => {
    while (Date.now() < until) {
      turns += 1;
      const one = subjects[turns % subjects.length];
      if (one !== undefined) await act(one, sessions.get(one) ?? {}, Math.floor(turns / subjects.length), agent);
      if (PAUSE_MS > 0) await delay(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  for (const [one, session] of sessions)
    await exchange(one.url, { method: 'DELETE', headers: { ...one.headers, ...session } }, '');
  agent.destroy();
  return turns;
} // prettier-ignore

/** So many calls of all proxies together, of one after the other. */
async function loadWithCalls(subjects: readonly Subject[], count: number): Promise<number> {
  const calls = Math.ceil(count / subjects.length);
  for (const { url, headers } of subjects) {
    const session = await openSession(url, headers);
    await measureCalls(url, { ...headers, ...session }, { connections: CONNECTIONS, calls });
    await exchange(url, { method: 'DELETE', headers: { ...headers, ...session } }, '');
  }
  return calls * subjects.length;
}

/** By how much a line through the values rises from the first to the last (least squares). */
function growth(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = (values.length - 1) / 2;
  let [above, below] = [0, 0];
  for (const [at, value] of values.entries()) {
    above += (at - middle) * (value - mean);
    below += (at - middle) ** 2;
  }
  return (above / below) * (values.length - 1);
}

const server = await started('http-echo.ts', []);
const subjects = [
  await subject('stdio with every step', 'all-steps.ts', ECHO),
  await subject('stdio', 'skep-proxy.ts', ECHO),
  await subject('HTTP, relayed', 'skep-relay.ts', [server.url]),
];
const samples = new Map<Subject, Held[]>(subjects.map((one) => [one, []]));
let turns = 0;
const begun = Date.now();
try {
  for (let at = 0; at < SAMPLES; at += 1) {
    turns +=
      CALLS > 0
        ? await loadWithCalls(subjects, CALLS / SAMPLES)
        : await load(subjects, Date.now() + (MINUTES * 60_000) / SAMPLES - SETTLES_MS);
    await delay(SETTLES_MS);
    // Of what was audited nobody reads a word.
    for (const log of globSync(path.join(folder, '*/audit.log'))) truncateSync(log);
    for (const [one, taken] of samples) taken.push(await held(one));
  }
} finally {
  for (const { child } of subjects) {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
}
console.log(`${turns} turns in ${Math.round((Date.now() - begun) / 60_000)} minutes`);
for (const [{ name }, taken] of samples) {
  for (const what of ['heap', 'outside', 'descriptors'] as const) {
    const values = taken.slice(WARM_UP).map((one) => one[what]);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const allowed = what === 'descriptors' ? MAX_GROWTH[what] : MAX_GROWTH[what] * mean;
    const isFlat = growth(values) <= allowed;
    const unit = what === 'descriptors' ? 1 : 1_000_000;
    const told = [values[0] ?? 0, mean, values.at(-1) ?? 0, growth(values), allowed].map((value) => (value / unit).toFixed(2));
    console.log(`${isFlat ? '✓' : '✗'} ${name}: ${what} first ${told[0]}, mean ${told[1]}, last ${told[2]}; the line rises by ${told[3]} of ${told[4]}`);
    if (!isFlat) process.exitCode = 1;
  }
} // prettier-ignore
