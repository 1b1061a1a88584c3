import { mkdtemp, rm } from 'node:fs/promises';
import http, { type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RuntimeEvent } from '../runtime.ts';
import { EngineClient } from './client.ts';
import { containerEvents } from './events.ts';
import { refused } from './failure.ts';

let directory: string;
let socketPath: string;
let server: http.Server | undefined;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-engine-'));
  socketPath = path.join(directory, 'engine.sock');
});
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
  await rm(directory, { recursive: true, force: true });
});

/** An engine that pings and leaves everything else to `answer`. */
async function engine(
  answer: RequestListener,
  ping: Record<string, string> = { 'Api-Version': '1.41' },
  bounds: { readonly maxBytes?: number; readonly silentMs?: number } = {},
): Promise<EngineClient> {
  server = http.createServer((request, response) => {
    if (request.url !== '/_ping') return answer(request, response);
    response.writeHead(200, ping).end('OK');
    return undefined;
  });
  await new Promise<void>((resolve) => void server?.listen(socketPath, resolve));
  return new EngineClient({ kind: 'unix', path: socketPath }, bounds);
}

const unreachable = () => ({
  code: 'runtime/engine-unreachable',
  message: expect.stringContaining(socketPath),
});

describe('EngineClient', () => {
  test('asks an engine once who it is, also where somebody did not wait for an answer', async () => {
    const client = await engine((request, response) => {
      if (request.url?.endsWith('/slow') !== true) response.end('{}');
    });
    let pings = 0;
    server?.on('request', ({ url }) => (pings += url === '/_ping' ? 1 : 0));
    await client.call({ path: '/quick' });
    const slow = client.call({ path: '/slow', signal: AbortSignal.timeout(20) });
    await expect(slow).rejects.toMatchObject(unreachable());
    await client.call({ path: '/quick' });
    expect(pings).toBe(1);
  });

  test('speaks the version both sides know and sends JSON with its length', async () => {
    const seen: IncomingMessage[] = [];
    const client = await engine((request, response) => {
      seen.push(request);
      response.writeHead(201).end('{"Id":"x"}');
    });
    const answer = await client.call({
      method: 'POST',
      path: '/a',
      query: { name: 'b c' },
      body: { k: 'é' },
    });
    expect(answer).toEqual({ status: 201, body: { Id: 'x' } });
    expect(seen[0]?.url).toBe('/v1.41/a?name=b+c');
    expect(seen[0]?.headers).toMatchObject({ 'content-type': 'application/json', 'content-length': '10' });
  });

  test('tells Podman by its header', async () => {
    const client = await engine(() => {}, { 'Api-Version': '1.41', 'Libpod-API-Version': '4.3.1' });
    expect(await client.ping()).toEqual({ apiVersion: '1.41', podman: true });
  });

  test('names the socket when there is none', async () => {
    const client = new EngineClient({ kind: 'unix', path: socketPath });
    await expect(client.call({ path: '/x' })).rejects.toMatchObject(unreachable());
  });

  test('takes an answer that is cut off for a lost engine, never for a short answer', async () => {
    const client = await engine((_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"half":');
      setImmediate(() => response.destroy());
    });
    await expect(client.call({ path: '/x' })).rejects.toMatchObject(unreachable());
  });

  test('recovers when the engine comes back with another version', async () => {
    const client = await engine((_request, response) => response.socket?.destroy());
    await expect(client.call({ path: '/x' })).rejects.toMatchObject(unreachable());
    server?.close();
    server?.closeAllConnections();
    await rm(socketPath, { force: true });
    const urls: string[] = [];
    await engine((request, response) => (urls.push(request.url ?? ''), void response.end('{}')), {
      'Api-Version': '1.30',
    });
    await client.call({ path: '/x' });
    expect(urls).toEqual(['/v1.30/x']);
  });

  test('reports an abort as an abort, before and during the answer', async () => {
    const leaving = new AbortController();
    const client = await engine((_request, response) => {
      response.writeHead(200).write('[', () => leaving.abort());
    });
    const ask = (signal: AbortSignal) => client.call({ path: '/x', signal });
    await expect(ask(AbortSignal.abort())).rejects.toMatchObject({ code: 'runtime/aborted' });
    await expect(ask(leaving.signal)).rejects.toMatchObject({ code: 'runtime/aborted' });
  });

  describe.each([
    ['does not begin to answer', () => {}],
    ['does not finish its answer', (_request, response) => void response.writeHead(200).write('[')],
  ] satisfies [string, RequestListener][])('says of an engine that %s', (_what, answer) => {
    const silent = () => ({
      code: 'runtime/engine-unreachable',
      message: `the container engine at unix://${socketPath} does not answer: it said nothing in time`,
      hint: 'check that it is running and that you may use its socket',
    });

    test('within the time limit that it does not answer', async () => {
      const client = await engine(answer);
      const limit = AbortSignal.any([new AbortController().signal, AbortSignal.timeout(30)]);
      await expect(client.call({ path: '/x', signal: limit })).rejects.toMatchObject(silent());
    });

    test('what it knows that it does not answer, and waits for what it does and for what happens', async () => {
      const left: ServerResponse[] = [];
      const toAnswer: RequestListener = (request, response) =>
        request.url?.endsWith('/x') === true ? answer(request, response) : void left.push(response);
      const client = await engine(toAnswer, { 'Api-Version': '1.41' }, { silentMs: 30 });
      const done = client.call({ method: 'POST', path: '/wait' });
      const events = client.lines({ path: '/events' }, () => new SkepError('runtime/engine-refused'));
      const event = events.next();
      await expect(client.call({ path: '/x' })).rejects.toMatchObject(silent());
      await expect(client.call({ path: '/x' })).rejects.toMatchObject(silent());
      for (const response of left) response.end('{"is":"late"}');
      expect(await done).toEqual({ status: 200, body: { is: 'late' } });
      expect(await event).toEqual({ done: false, value: { is: 'late' } });
      await events.return(undefined);
    });
  });

  test('holds a request to its time limit also while it asks who the engine is', async () => {
    let mute = true;
    server = http.createServer((_request, response) => {
      if (!mute) response.writeHead(200, { 'Api-Version': '1.41' }).end('{}');
    });
    await new Promise<void>((resolve) => void server?.listen(socketPath, resolve));
    const client = new EngineClient({ kind: 'unix', path: socketPath });
    const late = client.call({ path: '/x', signal: AbortSignal.timeout(30) });
    await expect(late).rejects.toMatchObject(unreachable());
    mute = false;
    await expect(client.call({ path: '/x' })).resolves.toMatchObject({ status: 200 });
  });

  test('gives the refusal of an upgrade as an answer', async () => {
    const client = await engine((_request, response) => void response.writeHead(404).end('{"message":"no"}'));
    expect(await client.hijack({ method: 'POST', path: '/attach' })).toEqual({
      status: 404,
      body: { message: 'no' },
    });
  });
});

describe('lines of JSON', () => {
  test('puts values together across chunks, also inside a character, and reads a last line without its end', async () => {
    const text = Buffer.from('{"a":"é"}\r\n\n{"b":1}\n{"c":2}');
    const client = await engine((_request, response) => {
      for (const byte of text) response.write(Buffer.from([byte]));
      response.end();
    });
    const seen = client.lines({ path: '/x' }, (answer) => refused('answer', answer));
    expect(await Array.fromAsync(seen)).toEqual([{ a: 'é' }, { b: 1 }, { c: 2 }]);
  });
});

test('an answer or a line without end is not read to the end', async () => {
  const endless: RequestListener = (_request, response) => {
    const more = (): void => void (response.destroyed || response.write('"'.repeat(1000), more));
    more();
  };
  const client = await engine(endless, { 'Api-Version': '1.41' }, { maxBytes: 10_000 });
  await expect(client.call({ path: '/x' })).rejects.toMatchObject({ code: 'fetch/too-large' });
  const lines = client.lines({ path: '/x' }, (answer) => refused('answer', answer));
  await expect(Array.fromAsync(lines)).rejects.toMatchObject({ code: 'fetch/too-large' });
});

describe('containerEvents', () => {
  const line = (action: string) =>
    `${JSON.stringify({ Action: action, Actor: { Attributes: { name: 'w' } } })}\n`;

  async function collect(client: EngineClient): Promise<{ seen: RuntimeEvent[]; error: unknown }> {
    const seen: RuntimeEvent[] = [];
    try {
      for await (const event of containerEvents(client, new AbortController().signal)) seen.push(event);
      return { seen, error: undefined };
    } catch (error) {
      return { seen, error };
    }
  }

  test.each([
    ['ends', (response: http.ServerResponse) => void response.end()],
    ['breaks', (response: http.ServerResponse) => void setImmediate(() => response.destroy())],
  ])('is an error when the stream %s, because it has no natural end', async (_how, finish) => {
    const client = await engine((_request, response) => {
      response.writeHead(200).write(line('start') + line('exec_create') + line('die') + line('destroy'));
      finish(response);
    });
    const { seen, error } = await collect(client);
    expect(seen.map((event) => event.action)).toEqual(['start', 'exit', 'remove']);
    expect(error).toMatchObject(unreachable());
  });
});
