import type { OutgoingHttpHeaders } from 'node:http';
import type { Backend } from '../backend/backend.ts';
import type { Step } from '../call/chain.ts';
import type { ProxyOptions } from '../start.ts';
import { ask, openStream, type Answer, type Stream } from './http-client.ts';
import { initializeRequest, newSession, runningProxy, type RunningProxy } from './running-proxy.ts';
import { scriptedHttpServer } from './scripted-http-server.ts';
import { scriptedServer, type Script, type ScriptedServer } from './scripted-server.ts';

const JSON_HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

/** Every way in which clients meet servers, by what the server speaks and whether a step looks into messages. */
export const FACES = ['stdio', 'relayed HTTP', 'HTTP', 'stdio by SSE', 'relayed SSE', 'SSE'] as const;
export type FaceName = (typeof FACES)[number];

/** A proxy as clients meet it; `await using` ends it. */
export interface Front extends AsyncDisposable {
  readonly face: FaceName;
  readonly proxy: RunningProxy;
}

/** A proxy with its server; `await using` ends both. */
export interface Faced extends Front {
  readonly server: Pick<ScriptedServer, 'received' | 'heard' | 'say'> & { readonly backend: Backend };
  /** Ends the server, or the pipe to it; the proxy goes on. */
  readonly cut: () => Promise<void>;
  /** The server's process ends, and another one takes its place, as whoever hosts the proxy tells it. */
  readonly restart: () => void;
}

/** The answer to one message, read alike whether it came on the reply or on the client's stream. */
export interface Heard extends Answer {
  readonly isOnStream: boolean;
}

export interface FaceClient {
  /** Where it posts. */
  readonly url: string;
  /** Of its session. */
  readonly headers: OutgoingHttpHeaders;
  /** Posts text; of a request that is answered on the stream, waits for the next event there. */
  readonly send: (body: string | Buffer, headers?: OutgoingHttpHeaders) => Promise<Heard>;
  readonly leave: () => void;
}

const lookInside: Step = (_call, next) => next();

export const isSse = (face: FaceName): boolean => face.endsWith('SSE');

/** Where bytes pass as they are, the server behind decides what the proxy decides elsewhere. */
export const isRelayed = (face: FaceName): boolean => face.startsWith('relayed');

export function kindOf(face: FaceName): Backend['kind'] {
  if (face.startsWith('stdio')) return 'stdio';
  return isSse(face) ? 'sse' : 'http';
}

/** The proxy in front of a server, which is of the kind of the face. */
export async function frontOf(
  face: FaceName,
  server: { readonly backend: Backend },
  options: Partial<ProxyOptions> = {},
): Promise<Front> {
  const steps = isRelayed(face) ? options.steps : { authorization: lookInside, ...options.steps };
  const mode = isSse(face) ? 'sse' : 'streamable-http';
  const proxy = await runningProxy(server, { ...options, mode, ...(steps && { steps }) });
  return { face, proxy, [Symbol.asyncDispose]: () => proxy.close() };
}

/** The proxy in front of a server that answers as scripted. */
export async function faced(
  face: FaceName,
  script: Script = () => undefined,
  options: Partial<ProxyOptions> = {},
): Promise<Faced> {
  const kind = kindOf(face);
  const server = kind === 'stdio' ? scriptedServer(script) : await scriptedHttpServer(kind, script);
  const front = await frontOf(face, server, options);
  const end = async (): Promise<void> => {
    if ('crash' in server) server.crash();
    else await server[Symbol.asyncDispose]();
  };
  return {
    ...front,
    server,
    cut: end,
    restart() {
      front.proxy.backendEnded();
      if ('forget' in server) server.forget();
      front.proxy.backendStarted();
    },
    async [Symbol.asyncDispose]() {
      await front.proxy.close();
      await end();
    },
  };
}

/** One that has no session. */
export function strangerTo({ face, proxy }: Front, headers: OutgoingHttpHeaders = {}): FaceClient {
  const url = isSse(face) ? `${proxy.origin}/messages?session_id=none` : proxy.url;
  const send: FaceClient['send'] = async (body, more = {}) => {
    const answer = await ask(url, { body, headers: { ...JSON_HEADERS, ...headers, ...more } });
    return { ...answer, isOnStream: false };
  };
  return { url, headers, send, leave() {} };
}

/** A client that has initialized, with `own` headers in all that it sends. */
export async function clientOf({ face, proxy }: Front, own: OutgoingHttpHeaders = {}): Promise<FaceClient> {
  return isSse(face) ? clientOfSse(proxy, own) : clientOfHttp(proxy, own);
}

async function clientOfHttp({ url }: RunningProxy, own: OutgoingHttpHeaders): Promise<FaceClient> {
  const headers = { ...own, ...(await newSession(url, undefined, own)) };
  return {
    url,
    headers,
    leave() {},
    async send(body, more = {}) {
      const answer = await ask(url, { body, headers: { ...JSON_HEADERS, ...headers, ...more } });
      const isOnStream = answer.headers['content-type'] === 'text/event-stream';
      const text = isOnStream ? (/^data: (.+)$/mu.exec(answer.text)?.[1] ?? '') : answer.text;
      return { ...answer, text, isOnStream };
    },
  };
}

/** The next that is said to this client alone: that lists have changed is for everybody, at any time. */
async function nextOwn(stream: Stream): Promise<string> {
  for (;;) {
    const text = (await stream.next())?.data ?? '';
    if (!/^\{"jsonrpc":"2\.0","method":"notifications\/\w+\/list_changed"\}$/u.test(text)) return text;
  }
}

async function clientOfSse(proxy: RunningProxy, headers: OutgoingHttpHeaders): Promise<FaceClient> {
  const stream = await openStream(proxy.url, {
    method: 'GET',
    headers: { Accept: 'text/event-stream', ...headers },
  });
  const url = new URL((await stream.next())?.data ?? '', proxy.url).href;
  const send: FaceClient['send'] = async (body, more = {}) => {
    const answer = await ask(url, { body, headers: { ...JSON_HEADERS, ...headers, ...more } });
    const isAnswered =
      answer.status === 202 && /"id"\s*:/u.test(String(body)) && /"method"/u.test(String(body));
    if (!isAnswered) return { ...answer, isOnStream: false };
    return { ...answer, text: await nextOwn(stream), isOnStream: true };
  };
  await send(JSON.stringify(initializeRequest('init')));
  await send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  return { url, headers, send, leave: () => stream.abort() };
}
