import { mkdtemp, rm } from 'node:fs/promises';
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import type { Report, Runtime } from '../runtime.ts';
import type { Spares } from '../spares.ts';
import { EngineClient } from './client.ts';
import { DockerRuntime } from './docker-runtime.ts';

/** What an engine under test is asked. */
export interface Asked {
  /** Method and path, without the version. */
  readonly what: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  /** Parsed where it is JSON. */
  readonly body: unknown;
}

/** What it answers: a status with JSON, with one JSON value a line, or with bytes. */
export interface Scripted {
  readonly status?: number;
  readonly body?: unknown;
  readonly lines?: readonly unknown[];
  readonly raw?: Buffer;
}

/** One answer for every time, several in their order (the last one stays), or one that depends on the question, and may wait. */
export type Script = Scripted | readonly Scripted[] | ((asked: Asked) => Scripted | Promise<Scripted>);

export interface EngineUnderTest {
  readonly runtime: Runtime;
  /** Path of the socket it answers at. */
  readonly socket: string;
  /** Everything it was asked, in order, but for the ping. */
  readonly asked: readonly Asked[];
  /** Steps and details that were told to the person. */
  readonly told: readonly string[];
  readonly report: Report;
  /** What was asked, without the details. */
  calls(): readonly string[];
}

export interface EngineOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly podman?: boolean;
  readonly spares?: Spares;
}

/** A runtime on an engine that answers as scripted, has no network and no gateway else, and answers 404 to everything else; it ends with the test. */
export async function scriptedEngine(
  script: Readonly<Record<string, Script>>,
  { env = {}, podman = false, spares }: EngineOptions = {},
): Promise<EngineUnderTest> {
  const directory = await mkdtemp(join(tmpdir(), 'skep-engine-'));
  const socket = join(directory, 'engine.sock');
  const asked: Asked[] = [];
  const told: string[] = [];
  const turns = new Map<string, number>();
  const server = http.createServer((request, response) => {
    if (request.url === '/_ping') {
      response.writeHead(200, {
        'Api-Version': '1.43',
        ...(podman ? { 'Libpod-API-Version': '5.0.0' } : {}),
      });
      response.end('OK');
      return;
    }
    void readAsked(request).then(async (question) => {
      asked.push(question);
      const answer = await next(script[question.what], question, turns);
      const { status = 200, body = {}, lines, raw } = answer;
      response.writeHead(status, { 'content-type': 'application/json' });
      if (raw) response.end(raw);
      else
        response.end(
          lines ? lines.map((line) => `${JSON.stringify(line)}\n`).join('') : JSON.stringify(body),
        );
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(directory, { recursive: true, force: true });
  });
  return {
    runtime: new DockerRuntime(
      new EngineClient({ kind: 'unix', path: socket }),
      { ...environment(directory, env), spares },
      async () => Buffer.from('gateway'),
    ),
    socket,
    asked,
    told,
    report: { step: (title) => told.push(title), detail: (line) => told.push(line) },
    calls: () => asked.map(({ what }) => what),
  };
}

function environment(home: string, env: Readonly<Record<string, string>>): RuntimeEnvironment {
  return {
    env,
    home,
    platform: 'linux',
    execPath: process.execPath,
    dataDir: join(home, 'data'),
    cacheDir: join(home, 'cache'),
    owner: 'owner',
    randomId: () => 'random',
  };
}

async function readAsked(request: IncomingMessage): Promise<Asked> {
  const url = new URL(request.url ?? '/', 'http://engine');
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return {
    what: `${request.method ?? ''} ${decodeURIComponent(url.pathname).replace(/^\/v[\d.]+/, '')}`,
    query: Object.fromEntries(url.searchParams),
    headers: request.headers,
    body: request.headers['content-type'] === 'application/json' ? (JSON.parse(text) as unknown) : text,
  };
}

function next(
  script: Script | undefined,
  question: Asked,
  turns: Map<string, number>,
): Scripted | Promise<Scripted> {
  // Unless a script has them, there are no networks and no gateways.
  const { what, query } = question;
  if (script === undefined && (what === 'GET /networks' || query['filters']?.includes('auxiliary-workload')))
    return { body: [] };
  if (script === undefined) return { status: 404, body: { message: `no such thing: ${question.what}` } };
  if (typeof script === 'function') return script(question);
  if (!isSeveral(script)) return script;
  const turn = turns.get(question.what) ?? 0;
  turns.set(question.what, turn + 1);
  return script[Math.min(turn, script.length - 1)] ?? {};
}

const isSeveral = (script: Scripted | readonly Scripted[]): script is readonly Scripted[] =>
  Array.isArray(script);
