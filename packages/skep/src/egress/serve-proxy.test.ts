import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { openGateway } from './gateway.fixture.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function gatewayFor(...args: Parameters<typeof openGateway>) {
  const gateway = await openGateway(...args);
  ends.push(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

/** An HTTP server on loopback. */
async function host(handler: RequestListener): Promise<number> {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
    return once(server, 'close');
  });
  return (server.address() as AddressInfo).port;
}

/** Through a proxy, as curl does for http. */
async function ask(proxy: number, url: string, headers: Record<string, string> = {}) {
  const asked = request({ host: '127.0.0.1', port: proxy, path: url, headers, agent: false }).end();
  const [reply] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: reply.statusCode, headers: reply.headers, body: await text(reply) };
}

/** A connection that says this, and everything that it is answered until the other side ends. */
async function say(port: number, said: string | Buffer): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1');
  socket.write(said);
  return text(socket);
}

describe('a request for an absolute address', () => {
  test('reaches a host that the profile lists, with the Host of its address', async () => {
    const port = await host((req, res) => res.end(JSON.stringify([req.method, req.url, req.headers])));
    const gateway = await gatewayFor({ hosts: ['api.example'], leadsTo: { 80: port } });
    const { status, body } = await ask(gateway.proxy, 'http://api.example/a/../b?c=d', {
      host: 'other.example',
      'proxy-authorization': 'Basic c2VjcmV0',
      connection: 'close, x-hop',
      'x-hop': '1',
      'x-kept': '2',
    });
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual([
      'GET',
      '/a/../b?c=d',
      { host: 'api.example', 'x-kept': '2', connection: 'close' },
    ]);
    expect(gateway.decisions()).toEqual([
      {
        time: expect.any(String),
        decision: 'allowed',
        host: 'api.example',
        port: 80,
        via: 'proxy',
        count: 1,
      },
    ]);
  });

  test('is refused for another host, unresolved, with the line that would allow it', async () => {
    const gateway = await gatewayFor({ hosts: ['api.example'] });
    const { status, body } = await ask(gateway.proxy, 'http://evil.example:8080/');
    expect(status).toBe(403);
    expect(body).toBe(
      'Skep does not let "demo" reach evil.example:8080: the profile does not list evil.example.\n' +
        'To allow it: skep permit demo evil.example:8080\n',
    );
    expect(gateway.resolved).toEqual([]);
    expect(gateway.decisions()).toMatchObject([{ decision: 'denied', host: 'evil.example', port: 8080 }]);
  });
});

test('CONNECT leads to a host that the profile lists', async () => {
  const port = await host((_req, res) => res.end('there'));
  const gateway = await gatewayFor({ hosts: ['api.example'], leadsTo: { 8080: port } });
  const answer = await say(
    gateway.proxy,
    'CONNECT api.example:8080 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n',
  );
  expect(answer).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nHTTP\/1\.1 200 OK[^]*there/);
  expect(gateway.connected).toEqual(['93.184.216.34 8080']);
});
