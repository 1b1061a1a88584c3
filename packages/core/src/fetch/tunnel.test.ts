import { once } from 'node:events';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server,
  type Socket,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRequester } from './requester.ts';
import { openTunnel, proxyFor } from './tunnel.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** Listens on the loopback interface; returns the port. */
async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return (server.address() as AddressInfo).port;
}

let port: number;
beforeEach(async () => {
  port = await listen(
    createServer((request, response) => void response.end(`answer of ${request.headers.host}`)),
  );
});

async function get(httpProxy: string): Promise<string> {
  const requester = openRequester({ allowPrivate: true, httpProxy });
  ends.push(() => requester.close());
  const signal = AbortSignal.timeout(10_000);
  const sending = { showTo: () => ({ headers: {} }), redirects: 'follow', signal } as const;
  const answer = await requester.send(new URL(`http://server.test:${port}/`), sending);
  return text(answer.body);
}

function joinTo(client: Socket): void {
  const server = connect(port, '127.0.0.1');
  client.on('error', () => server.destroy()).pipe(server);
  server.on('error', () => client.destroy()).pipe(client);
}

/** A proxy that knows one login and takes every name for the server's. */
async function httpProxy(): Promise<number> {
  const proxy = createServer().on('connect', (request, client: Socket) => {
    const isKnown =
      request.headers['proxy-authorization'] === `Basic ${Buffer.from('me:pass').toString('base64')}`;
    client.write(isKnown ? 'HTTP/1.1 200 OK\r\n\r\n' : 'HTTP/1.1 407 Who\r\n\r\n');
    if (isKnown && request.url === `server.test:${port}`) joinTo(client);
    else client.end();
  });
  return listen(proxy);
}

test('an HTTP proxy is asked for a tunnel, with its login', async () => {
  expect(await get(`http://me:pass@127.0.0.1:${await httpProxy()}`)).toBe(`answer of server.test:${port}`);
});

test.each([201, 204, 299])('an HTTP proxy may grant the tunnel with status %i', async (status) => {
  const proxy = createServer().on('connect', (_request, client: Socket) => {
    client.write(`HTTP/1.1 ${status} Granted\r\n\r\n`);
    joinTo(client);
  });
  expect(await get(`http://127.0.0.1:${await listen(proxy)}`)).toBe(`answer of server.test:${port}`);
});

test('a proxy that refuses makes the server unreachable', async () => {
  const refused = { code: 'fetch/unreachable', message: 'the forward proxy refused with status 407' };
  await expect(get(`http://127.0.0.1:${await httpProxy()}`)).rejects.toMatchObject(refused);
});

test('no proxy is asked where addresses are guarded, because the guard sees no name that a proxy resolves', async () => {
  const resolve = () => Promise.resolve([{ address: '10.0.0.1', family: 4 }]);
  const requester = openRequester({ allowPrivate: false, resolve, httpProxy: 'http://127.0.0.1:1' });
  ends.push(() => requester.close());
  const signal = AbortSignal.timeout(10_000);
  const sending = { showTo: () => ({ headers: {} }), redirects: 'follow', signal } as const;
  const sent = requester.send(new URL('http://server.test/'), sending);
  await expect(sent).rejects.toMatchObject({ code: 'fetch/refused-address' });
});

/** Says `replies` one by one as answers to what it is told, then passes everything on. */
async function socksProxy(replies: readonly string[]): Promise<{ proxy: number; told: string[] }> {
  const told: string[] = [];
  const server = createTcpServer((client) => {
    client.on('error', () => client.destroy());
    const answer = (bytes: Buffer): void => {
      told.push(bytes.toString('hex'));
      client.write(Buffer.from(replies[told.length - 1] ?? '', 'hex'));
      if (told.length < replies.length) return;
      client.off('data', answer);
      joinTo(client);
    };
    client.on('data', answer);
  });
  return { proxy: await listen(server), told };
}

const SERVER = Buffer.from('server.test').toString('hex');

test.each(['0100000000ffff', '0306612e7465737400ff', `04${'00'.repeat(18)}`])(
  'a SOCKS 5 proxy is given the login and the name, and may name its address as %s',
  async (address) => {
    const { proxy, told } = await socksProxy(['0502', '0100', `050000${address}`]);
    expect(await get(`socks5://me:pass@127.0.0.1:${proxy}`)).toBe(`answer of server.test:${port}`);
    const wanted = `050100030b${SERVER}${port.toString(16).padStart(4, '0')}`;
    expect(told).toEqual(['05020002', '01026d650470617373', wanted]);
  },
);

test.each([
  [['05ff'], 'the forward proxy refused the login'],
  [['0502'], 'the forward proxy refused the login'],
  [['0500', '05050001000000000000'], 'the forward proxy refused with reply 5'],
])('a SOCKS 5 proxy that says %j makes the server unreachable', async (replies, message) => {
  const { proxy } = await socksProxy(replies);
  await expect(get(`socks5://127.0.0.1:${proxy}`)).rejects.toMatchObject({
    code: 'fetch/unreachable',
    message,
  });
});

test('a server at an address, reached through a proxy, must show a certificate for that address', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skep-tunnel-'));
  ends.push(() => rm(dir, { recursive: true }));
  const served = async (name: string): Promise<string> => {
    const [keyPath, certPath] = [join(dir, `${name}.key`), join(dir, `${name}.pem`)];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'];
    const subject = ['-subj', '/CN=x', '-addext', `subjectAltName=${name}`];
    execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', keyPath, '-out', certPath], {
      stdio: 'ignore',
    });
    const [key, cert] = await Promise.all([readFile(keyPath, 'utf8'), readFile(certPath, 'utf8')]);
    port = await listen(createTlsServer({ key, cert }, (_request, response) => response.end('served')));
    const proxy = await listen(
      createServer().on('connect', (_request, client: Socket) => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        joinTo(client);
      }),
    );
    const requester = openRequester({
      allowPrivate: true,
      httpProxy: `http://localhost:${proxy}`,
      ca: [cert],
    });
    ends.push(() => requester.close());
    const signal = AbortSignal.timeout(10_000);
    const sending = { showTo: () => ({ headers: {} }), redirects: 'follow', signal } as const;
    return requester.send(new URL(`https://127.0.0.1:${port}/`), sending).then(({ body }) => text(body));
  };
  expect(await served('IP:127.0.0.1')).toBe('served');
  await expect(served('DNS:localhost')).rejects.toMatchObject({ code: 'fetch/unreachable' });
});

test('a proxy that answers byte by byte without end is left when its time is over', async () => {
  const closed = Promise.withResolvers<void>();
  const proxy = await listen(
    createTcpServer((client) => {
      client.on('error', () => client.destroy()).once('close', () => closed.resolve());
      client.resume().write('HTTP/1.1 200 OK\r\nx: ');
      const drip = setInterval(() => client.write('x'), 20);
      client.once('close', () => clearInterval(drip));
    }),
  );
  const to = { host: 'server.test', port };
  const opened = openTunnel(new URL(`http://127.0.0.1:${proxy}`), to, { timeoutMs: 200 });
  await expect(opened).rejects.toMatchObject({ message: 'the forward proxy did not answer in time' });
  await closed.promise;
});

test('a SOCKS 5 proxy that hangs up is not waited for', async () => {
  const proxy = await listen(
    createTcpServer((client) =>
      client
        .on('error', () => {})
        .resume()
        .end(),
    ),
  );
  const opened = openTunnel(
    new URL(`socks5://127.0.0.1:${proxy}`),
    { host: 'a', port },
    { timeoutMs: 9_000 },
  );
  await expect(opened).rejects.toMatchObject({ message: 'the forward proxy ended the connection' });
});

test('a SOCKS 5 proxy is told no name that it would take for another, shorter one', async () => {
  const { proxy, told } = await socksProxy(['0500', `050000010000000000ff`]);
  const to = { host: `${'a'.repeat(300)}.test`, port };
  const opened = openTunnel(new URL(`socks5://127.0.0.1:${proxy}`), to, { timeoutMs: 9_000 });
  await expect(opened).rejects.toMatchObject({
    message: 'the forward proxy takes no name or login of more than 255 bytes',
  });
  expect(told).toEqual(['050100']);
});

test.each([
  ['http://a.test/', '', 'http://plain.test/'],
  ['https://a.test/', '', 'http://secure.test/'],
  ['https://a.test/', '*', undefined],
  ['https://a.test/', 'b.test, A.test', undefined],
  ['https://x.a.test/', 'a.test', undefined],
  ['https://x.a.test/', '.a.test', undefined],
  ['https://x.a.test/', '*.a.test', undefined],
  ['https://xa.test/', 'a.test', 'http://secure.test/'],
  ['https://a.test/', 'a.test:443', undefined],
  ['https://a.test:444/', 'a.test:443', 'http://secure.test/'],
])('%s is fetched with "%s" exempt through %s', (url, noProxy, through) => {
  const proxies = { httpProxy: 'http://plain.test', httpsProxy: 'http://secure.test', noProxy };
  expect(proxyFor(new URL(url), proxies)?.href).toBe(through);
});
