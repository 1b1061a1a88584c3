import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { elsewhere, TRUSTED } from '../../doubles/elsewhere.ts';
import { ask, openStream, postJson } from '../../doubles/http-client.ts';
import { initializeRequest, newSession, runningProxy } from '../../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../../doubles/scripted-http-server.ts';
import { isCall } from '../../doubles/started-mux.ts';

const POST = {
  headers: { 'Content-Type': 'application/json' },
  body: '{"jsonrpc":"2.0","id":7,"method":"x/y"}',
};

describe('a server elsewhere', () => {
  test.each([
    ['/api/mcp', '/api/mcp', '/api/mcp'],
    ['/api/mcp', '/other', '/api/mcp'],
    ['/api/mcp?key=a,b%2F', '/api/mcp?c=d', '/api/mcp?key=a,b%2F&c=d'],
    ['/?key=1', '/mcp', '/mcp?key=1'],
    ['/', '/some/path?a=1,2', '/some/path?a=1,2'],
  ])('at %s is asked, for %s, for %s', async (at, path, expected) => {
    await using far = await elsewhere();
    await using proxy = await runningProxy({ backend: far.at(at) });
    expect((await ask(proxy.origin + path, POST)).status).toBe(200);
    expect(far.requests.map(({ line }) => line)).toEqual([`POST ${expected}`]);
  });

  test('hears nothing of what clients show of themselves, and what its person gave it', async () => {
    await using far = await elsewhere();
    await using proxy = await runningProxy({ backend: far.at('/mcp', { headers: { 'X-Key': 'ours' } }) });
    const theirs = { Authorization: 'Bearer theirs', Cookie: 'a=b', 'X-Key': 'theirs', 'X-Other': 'kept' };
    const from = { Origin: `http://localhost:${proxy.port}`, 'X-Forwarded-Host': 'evil.example' };
    await ask(proxy.url, { ...POST, headers: { ...POST.headers, ...theirs, ...from } });
    const headers: IncomingHttpHeaders = far.requests[0]?.headers ?? {};
    expect(headers).toMatchObject({
      host: new URL(far.origin).host,
      'x-key': 'ours',
      'x-other': 'kept',
      'x-forwarded-proto': 'https',
    });
    for (const name of ['authorization', 'cookie', 'origin', 'x-forwarded-host', 'x-forwarded-prefix'])
      expect(headers[name], name).toBeUndefined();
  });

  test('tells clients nothing that would lead them past the proxy', async () => {
    await using far = await elsewhere((_req, res) => {
      res
        .writeHead(401, {
          'WWW-Authenticate': 'Bearer realm="far"',
          'Set-Cookie': 'a=b',
          'Alt-Svc': 'h3=":443"',
        })
        .end();
    });
    await using proxy = await runningProxy({ backend: far.at('/mcp') });
    const answer = await ask(proxy.url, POST);
    expect(answer.status).toBe(401);
    for (const name of ['www-authenticate', 'set-cookie', 'alt-svc'])
      expect(answer.headers[name], name).toBeUndefined();
  });

  test.each([
    ['whose certificate nobody vouches for', { ca: [] }],
    ['at an address that is not public', { allowPrivate: false }],
  ])('%s is not asked', async (_name, access) => {
    await using far = await elsewhere();
    await using proxy = await runningProxy({ backend: far.at('/mcp', access) });
    expect((await ask(proxy.url, POST)).status).toBe(502);
    expect(far.requests).toEqual([]);
  });

  test('at a numeric address that is not public is not asked either', async () => {
    await using far = await elsewhere();
    const at = far.origin.replace('localhost', '127.0.0.1');
    await using proxy = await runningProxy({ backend: far.at(`${at}/mcp`, { allowPrivate: false }) });
    expect((await ask(proxy.url, POST)).status).toBe(502);
    expect(far.requests).toEqual([]);
  });

  test('is followed to other paths of its own, with method and body', async () => {
    await using far = await elsewhere((req, res) => {
      if (req.url === '/there') res.end('{"found":1}');
      else res.writeHead(302, { Location: '/there' }).end();
    });
    await using proxy = await runningProxy({ backend: far.at('/mcp') });
    expect(await ask(proxy.url, POST)).toMatchObject({ status: 200, text: '{"found":1}' });
    expect(far.requests.map(({ line, body }) => [line, body])).toEqual([
      ['POST /mcp', POST.body],
      ['POST /there', POST.body],
    ]);
  });

  test.each([
    ['https://other.invalid/in?key=a%2Cb&next=1#x', 'https://other.invalid/in?next=1#x'],
    ['https://other.invalid/in?key=a,b', 'https://other.invalid/in'],
    ['https://other.invalid/in?key=other', 'https://other.invalid/in?key=other'],
    ['/elsewhere?k%65y=a,b&c=d', '/elsewhere?c=d'],
  ])('keeps the key of its address to itself where it redirects to %s', async (location, expected) => {
    await using far = await elsewhere((_req, res) => void res.writeHead(303, { Location: location }).end());
    await using proxy = await runningProxy({ backend: far.at('/mcp?key=a,b') });
    expect((await ask(proxy.url, POST)).headers.location).toBe(expected);
  });

  test.each([
    ['to another host', 'https://other.invalid/mcp', 307],
    ['to the same host in the clear', 'http://localhost/mcp', 307],
    ['for ever', '/mcp', 502],
  ])('is not followed %s', async (_where, location, expected) => {
    await using far = await elsewhere((_req, res) => void res.writeHead(307, { Location: location }).end());
    await using proxy = await runningProxy({ backend: far.at('/mcp', { headers: { 'X-Key': 'secret' } }) });
    const answer = await ask(proxy.url, POST);
    expect(answer.status).toBe(expected);
    if (expected === 307) expect(answer.headers.location).toBe(location);
    expect(far.requests.length).toBeLessThanOrEqual(11);
  });

  test('is asked over connections that are kept', async () => {
    const ports = new Set<number | undefined>();
    await using far = await elsewhere((req, res) => {
      ports.add(req.socket.remotePort);
      res.end('{}');
    });
    await using proxy = await runningProxy({ backend: far.at('/mcp') });
    for (let calls = 0; calls < 3; calls += 1) await ask(proxy.url, POST);
    expect(ports.size).toBe(1);
  });
});

describe('a server elsewhere that speaks HTTP with SSE', () => {
  const stream =
    (told: string) =>
    (req: IncomingMessage, res: ServerResponse): void => {
      if (req.method === 'POST') res.writeHead(202).end();
      else {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' });
        res.write(`event: endpoint\ndata: ${told.replace('HOST', req.headers.host ?? '')}\n\n`);
      }
    };

  test.each([
    ['/sse?key=1', '/msgs?sid=1', 'GET /sse?key=1', 'POST /msgs?sid=1'],
    ['/', 'https://HOST/msgs?sid=1', 'GET /sse', 'POST /msgs?sid=1'],
    ['/a/sse', 'http://HOST/a/msgs', 'GET /a/sse', 'POST /a/msgs'],
  ])('at %s gets messages where its stream says, %s', async (at, told, ...lines) => {
    await using far = await elsewhere(stream(told));
    await using proxy = await runningProxy({ backend: far.at(at, {}, 'sse') });
    const events = await openStream(proxy.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
    const endpoint = (await events.next())?.data ?? '';
    expect((await ask(proxy.origin + endpoint, POST)).status).toBe(202);
    expect((await ask(`${proxy.origin}/admin`, POST)).status).toBe(404);
    expect(far.requests.map(({ line }) => line)).toEqual(lines);
    events.abort();
  });

  test('cannot have them sent to another host', async () => {
    await using far = await elsewhere(stream('https://other.invalid/msgs'));
    await using proxy = await runningProxy({ backend: far.at('/sse', {}, 'sse') });
    const events = await openStream(proxy.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
    expect(await events.next()).toBeUndefined();
  });
});

describe.each([
  ['here', undefined],
  ['elsewhere', TRUSTED],
] as const)('a session that a server %s has forgotten', (_where, tls) => {
  const call = (id: number): object => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { n: id } });

  test('is begun anew without its client, for all calls at once, and each is made once', async () => {
    await using server = await scriptedHttpServer('http', undefined, tls);
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    server.forget();
    const answers = await Promise.all([1, 2, 3].map((id) => postJson(proxy.url, call(id), session)));
    expect(answers.map(({ status, headers }) => [status, headers['mcp-session-id']])).toEqual(
      Array.from({ length: 3 }, () => [200, session['Mcp-Session-Id']]),
    );
    expect(server.received.filter(({ method }) => method === 'initialize')).toHaveLength(2);
    expect(server.received.filter(isCall)).toHaveLength(3);
    expect((await ask(proxy.url, { method: 'DELETE', headers: session })).status).toBe(204);
    expect(server.sessions).toBe(0);
  });

  test('is told to its client as such where that cannot be, with one answer', async () => {
    await using server = await scriptedHttpServer('http', undefined, tls);
    await using proxy = await runningProxy(server);
    const session = await newSession(proxy.url);
    await using after = await runningProxy(server);
    server.forget();
    const answer = await postJson(after.url, call(1), session);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      404,
      { jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'Session not found' } },
    ]);
    expect((await postJson(after.url, initializeRequest())).status).toBe(200);
    expect(server.received.filter(isCall)).toEqual([]);
  });

  test('costs no call that may have been made: a connection that breaks is a failure', async () => {
    await using server = await scriptedHttpServer(
      'http',
      (message) => {
        if (!isCall(message)) return undefined;
        server.forget();
        return 'handled';
      },
      tls,
    );
    await using proxy = await runningProxy(server);
    const answer = await postJson(proxy.url, call(1), await newSession(proxy.url));
    expect(answer.status).toBe(502);
    expect(server.received.filter(isCall)).toHaveLength(1);
  });
});
