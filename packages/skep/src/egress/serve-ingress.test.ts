import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { Peers } from './peers.fixture.ts';

const peers = new Peers();
afterEach(() => peers.end());

const PROXY = '127.0.0.1:7777';

async function ingressTo(port: number, inbound: readonly string[] = []) {
  return peers.gateway({ inbound, ingress: { host: '127.0.0.1', port, proxy: PROXY } });
}

describe('Host', () => {
  const answers = async (inbound: readonly string[], host: string) => {
    const gateway = await ingressTo(await peers.http((req, res) => res.end(req.headers.host)), inbound);
    const { status, body } = await peers.ask(gateway.ingress, '/mcp', { host });
    return status === 200 ? body : status;
  };

  test.each([
    'demo',
    'DEMO:8080',
    'localhost',
    'localhost:1',
    '127.0.0.1',
    '127.0.0.1:4243',
    '[::1]:80',
    'demo.',
  ])('%s is let through without a list, and passed on as it is', async (host) => {
    expect(await answers([], host)).toBe(host);
  });

  test.each([
    'evil.example',
    'evil.example:80',
    'demo.example',
    '127.0.0.2',
    'localhost.example',
    'a b',
    '@demo',
  ])('%s is not', async (host) => {
    expect(await answers([], host)).toBe(403);
  });

  test('a list takes the place of these names, and never locks out the proxy of Skep', async () => {
    const inbound = ['api.example', '.mcp.example'];
    expect(await answers(inbound, 'api.example:8080')).toBe('api.example:8080');
    expect(await answers(inbound, 'x.mcp.example')).toBe('x.mcp.example');
    expect(await answers(inbound, 'localhost')).toBe(403);
    expect(await answers(inbound, '127.0.0.1:7778')).toBe(403);
    expect(await answers(inbound, PROXY)).toBe(PROXY);
  });

  test('is looked at for every request of a connection, and what is refused is recorded', async () => {
    const asked: (string | undefined)[] = [];
    const port = await peers.http((req, res) => {
      asked.push(req.url);
      res.end();
    });
    const gateway = await ingressTo(port);
    const answer = await peers.say(
      gateway.ingress,
      'GET /1 HTTP/1.1\r\nHost: demo\r\n\r\nGET /2 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*HTTP\/1\.1 403 /);
    expect(asked).toEqual(['/1']);
    expect(gateway.decisions()).toMatchObject([{ decision: 'denied', host: 'evil.example', via: 'ingress' }]);
  });

  test.each([
    ['an absolute address', 'GET http://demo/ HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n', 403],
    ['two of it', 'GET / HTTP/1.1\r\nHost: demo\r\nHost: evil\r\nConnection: close\r\n\r\n', 403],
    ['CONNECT', 'CONNECT demo:80 HTTP/1.1\r\nHost: demo\r\n\r\n', 405],
  ])('%s is refused', async (_what, said, status) => {
    const gateway = await ingressTo(await peers.http((_req, res) => res.end('reached')));
    expect(await peers.say(gateway.ingress, said)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });
});

test('events pass as they are sent, and the server notices that the client went', async () => {
  const gone = Promise.withResolvers<unknown>();
  const port = await peers.http((_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    res.once('close', gone.resolve);
  });
  const gateway = await ingressTo(port);
  const asked = request({
    host: '127.0.0.1',
    port: gateway.ingress,
    path: '/sse',
    headers: { host: 'demo' },
  }).end();
  const [reply] = (await once(asked, 'response')) as [IncomingMessage];
  expect(String((await once(reply, 'data'))[0])).toBe('data: 1\n\n');
  reply.on('error', () => {});
  asked.destroy();
  await gone.promise;
});

test('another protocol passes', async () => {
  const server = createServer();
  server.on('upgrade', (_req: IncomingMessage, socket: Socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.pipe(socket);
  });
  const gateway = await ingressTo(await peers.listen(server));
  const socket = peers.connect(gateway.ingress);
  socket.end('GET / HTTP/1.1\r\nHost: demo\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping');
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 101 [^]*ping$/);
});

test('a server that is not there is a bad gateway', async () => {
  const port = await peers.tcp(() => {});
  await peers.end();
  const gateway = await ingressTo(port);
  expect((await peers.ask(gateway.ingress, '/', { host: 'demo' })).status).toBe(502);
});
