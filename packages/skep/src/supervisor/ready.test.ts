import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { systemClock } from '@skep/core/time/clock.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import type { StartEvent } from './protocol.ts';
import { askOverHttp, untilHttpAnswer } from './http-probe.ts';
import { untilReady } from './ready.ts';
import { STDIO_SPEC as spec } from '../runtime/doubles/stdio-spec.ts';

interface Asked {
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  /** What the server has written. */
  readonly says?: string;
  readonly exits?: number;
  /** Its time is never up. */
  readonly asksAgain?: boolean;
}

/** A clock whose sleeps are noted and over at once, unless the server is to end first. */
async function ready({ ask, says = '', exits, asksAgain = false }: Asked) {
  const runtime = new MemoryRuntime({ 'fake:1': (process) => process.warn(says) });
  const slept: number[] = [];
  const told: StartEvent[] = [];
  if (exits !== undefined) runtime.crash = { exitCode: exits, says: '' };
  await runtime.create(spec);
  await runtime.start('a1');
  const clock = {
    ...systemClock,
    sleep: (ms: number) => (
      slept.push(ms),
      exits === undefined && !(asksAgain && ms === 45_000) ? Promise.resolve() : never<void>()
    ),
  };
  const readiness = untilReady({
    runtime,
    name: 'a1',
    clock,
    tell: (event) => told.push(event),
    signal: new AbortController().signal,
    ask,
    where: 'over HTTP',
    patienceMs: 45_000,
  });
  return { readiness, slept, told };
}

const never = <T = unknown>(): Promise<T> => new Promise(() => {});

describe('a server', () => {
  test('is ready as soon as it has answered', async () => {
    const { readiness } = await ready({ ask: async () => 'an answer' });
    expect(await readiness).toBe('an answer');
  });

  test('that ends is reported with its last lines, however late it ends', async () => {
    const { readiness, told } = await ready({ ask: never, exits: 3, says: 'KEY is not set\n' });
    await expect(readiness).rejects.toMatchObject({ code: 'run/crashed-at-start', detail: { exitCode: 3 } });
    expect(told).toEqual([{ kind: 'output', line: 'KEY is not set' }]);
  });

  test('whose pipe broke because it ended is reported as ended', async () => {
    const { readiness } = await ready({ ask: () => Promise.reject(new TypeError('lost')), exits: 1 });
    await expect(readiness).rejects.toMatchObject({ code: 'run/crashed-at-start' });
  });

  test('that could not be asked is asked again', async () => {
    const outcomes = [Promise.reject(new TypeError('lost')), Promise.resolve({ name: 'late' })];
    const { readiness } = await ready({ ask: () => outcomes.shift() ?? never(), asksAgain: true });
    expect(await readiness).toEqual({ name: 'late' });
  });

  test('that never answers is refused with its last lines when its time is up', async () => {
    const { readiness, slept, told } = await ready({ ask: never, says: 'loading\n' });
    await expect(readiness).rejects.toMatchObject({
      code: 'run/no-answer',
      message: 'the server of "a1" did not answer an MCP initialize over HTTP within 45 s',
    });
    expect(slept).toEqual([45_000]);
    expect(told).toEqual([{ kind: 'output', line: 'loading' }]);
  });
});

describe('asking over HTTP', () => {
  const result = { jsonrpc: '2.0', id: 'skep-init-check', result: { serverInfo: { name: 'web' } } };
  const json = (value: unknown, init?: ResponseInit) => new Response(JSON.stringify(value), init);

  function asking(
    answers: readonly ((init: RequestInit) => Response | Promise<Response>)[],
    signal = new AbortController().signal,
  ) {
    const slept: number[] = [];
    const methods: (string | undefined)[] = [];
    const left = [...answers];
    const answer = untilHttpAnswer({
      endpoint: 'http://127.0.0.1:1/mcp',
      version: '9.9.9',
      clock: { ...manualClock(), sleep: async (ms) => void slept.push(ms) },
      delays: { first: 10, longest: 30 },
      signal,
      fetch: async (_url, init = {}) => {
        methods.push(init.method);
        const next = left.shift();
        if (next === undefined) throw new TypeError('fetch failed');
        return next(init);
      },
    });
    return { answer, slept, methods };
  }

  test('begins at once and goes on in short, growing steps', async () => {
    const refused = (): Response => {
      throw new TypeError('fetch failed');
    };
    const { answer, slept } = asking([refused, refused, refused, refused, () => json(result)]);
    expect(await answer).toMatchObject({ result: { serverInfo: { name: 'web' } } });
    expect(slept).toEqual([10, 20, 30, 30]);
  });

  test('takes no web page and no word of a failing gateway for an answer', async () => {
    const { answer, slept } = asking([
      () => new Response('<html>'),
      () => json({ jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'Bad gateway' } }, { status: 502 }),
      () => new Response('data: {"jsonrpc":"2.0","id":1,"resu', { status: 200 }),
      () => new Response(`: hello\nevent: message\ndata: ${JSON.stringify(result)}\n\n`),
    ]);
    expect(await answer).toMatchObject({ result: { serverInfo: { name: 'web' } } });
    expect(slept).toHaveLength(3);
  });

  test('reads no more of an endless answer than it needs to', async () => {
    let pieces = 0;
    const endless = new ReadableStream({
      pull(controller) {
        pieces += 1;
        controller.enqueue(new TextEncoder().encode('['.repeat(1024)));
      },
    });
    const { answer } = asking([() => new Response(endless), () => json(result)]);
    expect(await answer).toMatchObject({ result: { serverInfo: { name: 'web' } } });
    expect(pieces).toBeLessThan(300);
  });

  test('sends one initialize, with the version of Skep, and names no revision beside it', async () => {
    const sent: unknown[] = [];
    const heard = ({ method, headers, body }: RequestInit) => {
      sent.push({ method, headers, body: typeof body === 'string' ? (JSON.parse(body) as unknown) : body });
      return json(result);
    };
    await asking([heard]).answer;
    expect(sent).toEqual([
      {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: {
          jsonrpc: '2.0',
          id: 'skep-init-check',
          method: 'initialize',
          params: {
            protocolVersion: '2025-11-25',
            capabilities: {},
            clientInfo: { name: 'skep', version: '9.9.9' },
          },
        },
      },
    ]);
  });

  test('takes an error without an id for an answer', async () => {
    const refusal = { jsonrpc: '2.0', id: null, error: { code: -32602, message: 'version' } };
    const { answer, slept } = asking([() => json(refusal, { status: 400 })]);
    expect([await answer, slept]).toEqual([{ result: undefined, session: undefined }, []]);
  });

  test('takes an answer in whatever pieces it comes', async () => {
    const bytes = new TextEncoder().encode(`: é\nevent: message\ndata: ${JSON.stringify(result)}\n\n`);
    const pieces = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    expect(await asking([() => new Response(pieces)]).answer).toMatchObject({
      result: { serverInfo: { name: 'web' } },
    });
  });

  test.each([401, 403])('takes %d for an answer: somebody is there who wants a token', async (status) => {
    expect(await asking([() => new Response('', { status })]).answer).toMatchObject({ result: undefined });
  });

  const inSession = { headers: { 'mcp-session-id': 's' } };

  test('keeps the session of an answer for what is asked next, and ends that of any other', async () => {
    const { answer, methods } = asking([
      () => json(1, inSession),
      () => json(1),
      () => json(result, inSession),
    ]);
    expect(await answer).toMatchObject({ session: 's' });
    expect(methods).toEqual(['POST', 'DELETE', 'POST']);
  });

  test('a server that never answers to the end of the session does not hold up its own stop', async () => {
    const stop = new AbortController();
    const { answer } = asking(
      [
        () => json(1, inSession),
        ({ signal }) => {
          queueMicrotask(() => stop.abort(new Error('stopped')));
          return new Promise((_, reject) =>
            signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
          );
        },
      ],
      stop.signal,
    );
    await expect(answer).rejects.toThrow('stopped');
  });

  test.each([301, 302, 303, 307, 308])('follows a redirect (%d) to its own paths at most', async (status) => {
    const asked: string[] = [];
    const serverOf = async (answer: RequestListener): Promise<string> => {
      const server = createServer(answer).listen(0, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => void (server.closeAllConnections(), server.close()));
      const address = server.address();
      return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
    };
    const elsewhere = await serverOf(({ method, url }, res) => {
      asked.push(`${method} ${url} elsewhere`);
      res.end(JSON.stringify(result));
    });
    const server = await serverOf(({ method, url }, res) => {
      asked.push(`${method} ${url}`);
      if (url === '/mcp') res.writeHead(status, { Location: '/mcp/' }).end();
      else res.writeHead(status, { Location: `${elsewhere}/secret`, 'Mcp-Session-Id': 's' }).end();
    });
    const stop = new AbortController();
    const answer = untilHttpAnswer({
      endpoint: `${server}/mcp`,
      version: '9.9.9',
      fetch,
      clock: { ...manualClock(), sleep: () => Promise.reject(new Error('asked once')) },
      signal: stop.signal,
      delays: { first: 10, longest: 30 },
    });
    await expect(answer).rejects.toThrow('asked once');
    const keepsMethod = status === 307 || status === 308;
    const end = keepsMethod ? ['POST /mcp/', 'DELETE /mcp'] : [];
    expect(asked.slice(0, 3)).toEqual(['POST /mcp', ...end]);
    expect(asked.join()).not.toContain('elsewhere');
  });

  test('announces itself once, then asks in the session and revision of the greeting', async () => {
    const seen: object[] = [];
    const server = {
      endpoint: 'http://127.0.0.1:1/mcp',
      fetch: async (_url: unknown, { headers, body }: RequestInit = {}) => {
        seen.push({ ...(headers as object), body: JSON.parse(body as string) as unknown });
        return json({ jsonrpc: '2.0', id: ID, result: { tools: [] } });
      },
    };
    const ask = askOverHttp({ result: { protocolVersion: '2025-06-18' }, session: 's' }, server);
    await ask('tools/list', {}, new AbortController().signal);
    expect(JSON.parse(await ask('tools/list', { cursor: 'a' }, new AbortController().signal))).toMatchObject({
      result: { tools: [] },
    });
    const head = { 'mcp-session-id': 's', 'mcp-protocol-version': '2025-06-18' };
    expect(seen).toMatchObject([
      { ...head, body: { method: 'notifications/initialized' } },
      { ...head, body: { id: ID, method: 'tools/list', params: {} } },
      { ...head, body: { id: ID, method: 'tools/list', params: { cursor: 'a' } } },
    ]);
  });
});

const ID = 'skep-init-check';
