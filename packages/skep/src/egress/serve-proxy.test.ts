import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { createServer as createTlsServer, connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { certificateFor, Peers, RETRY_REQUEST } from './peers.fixture.ts';

const peers = new Peers();
afterEach(() => peers.end());

const echo = () =>
  peers.http((req, res) => void res.end(JSON.stringify([req.method, req.url, req.headersDistinct])));

describe('a request for an absolute address', () => {
  test('reaches a host that the profile lists, with the Host of its address and without what is for one hop', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'], leadsTo: { 80: await echo() } });
    const { status, body } = await peers.ask(gateway.proxy, 'http://User:pw@API.example./a/../b?c=d#e', {
      host: 'other.example',
      'proxy-authorization': 'Basic c2VjcmV0',
      'proxy-connection': 'keep-alive',
      te: 'trailers',
      connection: 'close, x-hop',
      'x-hop': '1',
      'x-kept': '2',
    });
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual([
      'GET',
      '/a/../b?c=d',
      { host: ['api.example'], 'x-kept': ['2'], connection: ['close'] },
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

  test.each([
    ['http://api.example', '/', 'api.example', 80],
    ['HTTP://api.example:8080?q', '/?q', 'api.example:8080', 8080],
    ['http://[2606:4700::0:1]/', '/', '[2606:4700::1]', 80],
    ['http://0x5db8d822/', '/', '93.184.216.34', 80],
  ])('%s goes on as %s to %s', async (url, path, host, port) => {
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { [port]: await echo() } });
    const { body } = await peers.ask(gateway.proxy, url);
    expect(JSON.parse(body)).toMatchObject(['GET', path, { host: [host] }]);
  });

  test.each([
    '/',
    'https://api.example/',
    'ftp://api.example/',
    'http://',
    'http:///x',
    'http://api.example:0/',
    'http://good.example\\@api.example/',
    'http://a@b@api.example/',
    'http://api%2eexample/',
  ])('%s is no address that a proxy takes', async (url) => {
    const gateway = await peers.gateway({ allowAll: true });
    expect((await peers.ask(gateway.proxy, url)).status).toBe(400);
    expect(gateway.resolved).toEqual([]);
  });

  test('is refused for another host, unresolved, with the line that would allow it', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'] });
    const { status, body } = await peers.ask(gateway.proxy, 'http://evil.example:8080/');
    expect(status).toBe(403);
    expect(body).toBe(
      'Skep does not let "demo" reach evil.example:8080: the profile does not list evil.example.\n' +
        'To allow it: skep permit demo evil.example:8080\n',
    );
    expect(gateway.resolved).toEqual([]);
    expect(gateway.decisions()).toMatchObject([{ decision: 'denied', host: 'evil.example', port: 8080 }]);
  });

  test('is refused without such a line where nothing can allow it', async () => {
    const gateway = await peers.gateway({ allowAll: true });
    const { status, body } = await peers.ask(gateway.proxy, 'http://2852039166/latest/meta-data');
    expect([status, body]).toEqual([
      403,
      'Skep does not let "demo" reach 169.254.169.254:80: 169.254.169.254 is an address that no profile can allow.\n',
    ]);
    expect(gateway.decisions()).toMatchObject([{ decision: 'denied', host: '169.254.169.254', never: true }]);
  });

  test('is judged anew on a connection that was used before', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'], leadsTo: { 80: await echo() } });
    const answer = await peers.say(
      gateway.proxy,
      'GET http://api.example/1 HTTP/1.1\r\nHost: api.example\r\n\r\n' +
        'GET http://evil.example/2 HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK[^]*HTTP\/1\.1 403 Forbidden/);
    expect(gateway.connected).toEqual(['93.184.216.34 80']);
  });

  test('whose name is not found is answered with 502 and why', async () => {
    const gateway = await peers.gateway({ hosts: ['.example'], names: { 'no.example': [] } });
    const { status, body } = await peers.ask(gateway.proxy, 'http://no.example/');
    const reason = 'the address of no.example was not found (ENOTFOUND)';
    expect([status, body]).toEqual([502, `${reason}\n`]);
    expect(gateway.decisions()).toEqual([
      expect.objectContaining({ decision: 'not-found', host: 'no.example', port: 80, via: 'proxy', reason }),
    ]);
  });

  test('to a port where nobody listens is answered with 502 and why', async () => {
    const closed = await peers.tcp(() => {});
    await peers.end();
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: closed } });
    const { status, body } = await peers.ask(gateway.proxy, 'http://api.example/');
    expect([status, body]).toEqual([502, 'api.example:80 does not answer (ECONNREFUSED)\n']);
  });

  test('to a server that answers no HTTP is answered with 502', async () => {
    const leadsTo = { 80: await peers.tcp((socket) => socket.end('SSH-2.0-x\r\n\r\n')) };
    const gateway = await peers.gateway({ allowAll: true, leadsTo });
    expect((await peers.ask(gateway.proxy, 'http://api.example/')).status).toBe(502);
  });

  test('a body of any size goes both ways, no faster than it is read', async () => {
    const size = 24 * 2 ** 20;
    const port = await peers.http((req, res) => req.pipe(res));
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    const asked = request({
      host: '127.0.0.1',
      port: gateway.proxy,
      method: 'POST',
      path: 'http://api.example/',
    });
    const block = Buffer.alloc(2 ** 20, 'x');
    let sent = 0;
    const more = () => {
      while (sent < size) {
        sent += block.length;
        if (!asked.write(block)) return void asked.once('drain', more);
      }
      return void asked.end();
    };
    more();
    const [reply] = (await once(asked, 'response')) as [IncomingMessage];
    // Nobody reads the answer yet, so the server takes no more either: what is under way is far from all.
    await expect.poll(() => asked.writableNeedDrain).toBe(true);
    expect(sent).toBeLessThan(size);
    expect((await buffer(reply)).length).toBe(size);
  });

  test('a chunked body stays one, and a length stays a length', async () => {
    const port = await peers.http(async (req, res) => {
      const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
      res.end(JSON.stringify([length ?? null, coding ?? null, await text(req)]));
    });
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    const say = (rest: string) =>
      peers.say(
        gateway.proxy,
        `DELETE http://a.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${rest}`,
      );
    expect(await say('Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n')).toContain(
      '[null,"chunked","abc"]',
    );
    expect(await say('Content-Length: 3\r\n\r\nabc')).toContain('["3",null,"abc"]');
    expect(await say('\r\n')).toContain('[null,null,""]');
  });

  test('an answer that comes before the body was sent arrives', async () => {
    const port = await peers.tcp((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 413 No\r\nContent-Length: 8\r\n\r\ntoo much'));
    });
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    const asked = request({
      host: '127.0.0.1',
      port: gateway.proxy,
      method: 'POST',
      path: 'http://a.example/',
      headers: { 'content-length': 2 ** 30 },
    });
    asked.on('error', () => {});
    asked.write(Buffer.alloc(2 ** 20));
    const [reply] = (await once(asked, 'response')) as [IncomingMessage];
    expect([reply.statusCode, await text(reply)]).toEqual([413, 'too much']);
    asked.destroy();
  });

  test('an answer is passed on as it comes, and ends for the server when the client goes', async () => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const port = await peers.http((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'set-cookie': ['a=1', 'b=2'] });
      res.write('data: 1\n\n');
      const ticking = setInterval(() => res.write(': still here\n\n'), 10);
      res.once('close', () => {
        clearInterval(ticking);
        resolve();
      });
    });
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    const asked = request({ host: '127.0.0.1', port: gateway.proxy, path: 'http://a.example/' }).end();
    const [reply] = (await once(asked, 'response')) as [IncomingMessage];
    const [first] = (await once(reply, 'data')) as [Buffer];
    expect(first.toString()).toBe('data: 1\n\n');
    expect(reply.headers['set-cookie']).toEqual(['a=1', 'b=2']);
    reply.on('error', () => {});
    asked.destroy();
    await ended;
  });

  test('is answered although the client ended its own direction', async () => {
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: await echo() } });
    const socket = peers.connect(gateway.proxy);
    socket.end('GET http://a.example/half HTTP/1.1\r\nHost: a.example\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK[^]*"\/half"/);
  });

  test('an answer that breaks off does not look whole', async () => {
    const port = await peers.tcp((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
        socket.end();
      });
    });
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    await expect(peers.ask(gateway.proxy, 'http://a.example/')).rejects.toThrow(/aborted|hang up|reset/i);
  });
});

describe('what could be read in two ways is refused', () => {
  const head = 'POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n';
  const hidden = 'GET http://a.example/hidden HTTP/1.1\r\nHost: a.example\r\n\r\n';
  test.each([
    ['two lengths', `${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello${hidden}`],
    [
      'a length and chunks',
      `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    ['chunks twice', `${head}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['another coding', `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['a length with a sign', `${head}Content-Length: +5\r\n\r\nhello${hidden}`],
    ['a space before the colon', `${head}Content-Length : 5\r\n\r\nhello${hidden}`],
    ['a folded header', `${head}X: a\r\n Content-Length: 5\r\n\r\nhello${hidden}`],
    ['a line that ends without CR', `${head}X: a\nContent-Length: 5\r\n\r\nhello${hidden}`],
    ['a NUL', `${head}X: a\0b\r\n\r\n${hidden}`],
    ['no Host', 'GET http://a.example/ HTTP/1.1\r\n\r\n'],
  ])('%s', async (_what, said) => {
    const asked: string[] = [];
    const port = await peers.http((req, res) => {
      asked.push(req.url ?? '');
      req.resume().on('end', () => res.end());
    });
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    expect(await peers.say(gateway.proxy, said)).toMatch(/^(?:HTTP\/1\.1 400 |$)/);
    expect(asked).not.toContain('/hidden');
  });

  test('headers beyond a bound', async () => {
    const gateway = await peers.gateway({ allowAll: true });
    expect(await peers.say(gateway.proxy, `${head}X: ${'a'.repeat(70_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 4/,
    );
  });
});

describe('where a body ends', () => {
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: evil.example\r\n\r\n';
  test.each([
    ['is for one hop', 'Connection: content-length\r\n'],
    ['comes behind thousands of headers', 'A:\r\n'.repeat(2_500)],
  ])('is said to the server too where its length %s', async (_what, headers) => {
    const heard = Promise.withResolvers<string>();
    const port = await peers.tcp((socket) => {
      let all = '';
      socket.on('data', (chunk: Buffer) => {
        all += String(chunk);
        if (all.endsWith(hidden)) heard.resolve(all);
      });
    });
    const gateway = await peers.gateway({ hosts: ['a.example'], leadsTo: { 80: port } });
    const socket = peers.connect(gateway.proxy);
    socket.write(
      `GET http://a.example/ HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${hidden.length}\r\n\r\n${hidden}`,
    );
    expect(await heard.promise).toMatch(new RegExp(`\r\ncontent-length: ${hidden.length}\r\n`, 'i'));
  });
});

describe('requests that come before the answer to another one', () => {
  const ask = (path: number) => `GET http://a.example/${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
  /** A reset is an end. */
  const ended = (port: number, said: string) => peers.say(port, said).catch(() => '');

  test('are sent on one after the other', async () => {
    const waiting: (() => void)[] = [];
    const port = await peers.http((req, res) => waiting.push(() => res.end(req.url)));
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    const socket = peers.connect(gateway.proxy);
    let answers = '';
    socket.on('data', (chunk: Buffer) => (answers += String(chunk)));
    socket.write([1, 2, 3].map(ask).join(''));
    for (const done of [1, 2, 3]) {
      await expect.poll(() => waiting.length).toBe(1);
      expect(gateway.connected).toHaveLength(done);
      waiting.pop()?.();
      await expect.poll(() => answers).toMatch(new RegExp(`/${done}\r?\n?`));
    }
  });

  test('end the connection where there are too many, and lead nowhere', async () => {
    const port = await peers.http(() => {});
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    await ended(gateway.proxy, Array.from({ length: 1_000 }, (_, index) => ask(index)).join(''));
    expect(gateway.connected.length).toBeLessThan(2);
  });

  test('of which one asks for a tunnel end the connection', async () => {
    const port = await peers.http(() => {});
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    await ended(gateway.proxy, `${ask(1)}CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n`);
    expect(gateway.connected).not.toContain('93.184.216.34 443');
  });
});

describe('another protocol', () => {
  const upgrade =
    'GET http://a.example/socket HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';

  test('that the server agrees to joins the two connections', async () => {
    const server = createServer();
    server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\n\r\n`,
      );
      socket.pipe(socket);
    });
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: await peers.listen(server) } });
    const socket = peers.connect(gateway.proxy);
    socket.end(`${upgrade}\r\nping`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 101 [^]*upgrade: websocket\r\n\r\nping$/i);
  });

  test('that the server does not agree to ends with its answer', async () => {
    const port = await peers.http((_req, res) => res.writeHead(426).end('no'));
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port } });
    expect(await peers.say(gateway.proxy, `${upgrade}\r\n`)).toMatch(/^HTTP\/1\.1 426 [^]*no$/);
  });

  test('for a host that is not allowed is refused', async () => {
    const gateway = await peers.gateway({ hosts: ['b.example'] });
    expect(await peers.say(gateway.proxy, `${upgrade}\r\n`)).toMatch(/^HTTP\/1\.1 403 Forbidden/);
  });

  test('together with a body is refused, since nobody can say where that ends', async () => {
    const gateway = await peers.gateway({ allowAll: true });
    expect(await peers.say(gateway.proxy, `${upgrade}Content-Length: 4\r\n\r\nping`)).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(gateway.connected).toEqual([]);
  });
});

describe('CONNECT', () => {
  test('leads to a host that the profile lists, at its port', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'], leadsTo: { 8080: await echo() } });
    const { status, socket } = await peers.tunnel(gateway.proxy, 'api.example:8080');
    expect(status).toBe(200);
    socket.write('GET /x HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK[^]*"\/x"/);
    expect(gateway.connected).toEqual(['93.184.216.34 8080']);
  });

  test('for another host or port is refused with the line that would allow it', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'], ports: [443] });
    for (const target of ['evil.example:443', 'api.example:22']) {
      const answer = await peers.say(gateway.proxy, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
      expect(answer).toContain(`skep permit demo ${target}`);
    }
    expect(gateway.resolved).toEqual([]);
  });

  test.each(['api.example', ':443', 'api.example:0', 'http://api.example:443', 'a b:443', '/'])(
    'to "%s" is no request',
    async (target) => {
      const gateway = await peers.gateway({ allowAll: true });
      const answer = await peers.say(gateway.proxy, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    },
  );

  test('one side may end while the other goes on', async () => {
    const port = await peers.tcp(async (socket) => {
      const said = await text(socket);
      socket.end(`you said ${said}`);
    });
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 22: port } });
    const socket = peers.connect(gateway.proxy);
    socket.end('CONNECT a.example:22 HTTP/1.1\r\nHost: x\r\n\r\nhello');
    expect(await text(socket)).toMatch(/\r\n\r\nyou said hello$/);
  });

  test('the server may speak first, and end first', async () => {
    const port = await peers.tcp((socket) => socket.end('SSH-2.0-demo\r\n'));
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 22: port } });
    const { socket, head } = await peers.tunnel(gateway.proxy, 'a.example:22');
    expect(head.toString() + (await text(socket))).toBe('SSH-2.0-demo\r\n');
  });

  test('what breaks on one side breaks on the other', async () => {
    const broken = Promise.withResolvers<boolean>();
    const port = await peers.tcp((socket) => socket.resume().once('close', broken.resolve));
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 22: port } });
    const { socket } = await peers.tunnel(gateway.proxy, 'a.example:22');
    socket.resetAndDestroy();
    await broken.promise;
  });
});

describe('TLS in a tunnel', () => {
  const certificate = certificateFor('api.example', 'other.example', 'evil.example');

  async function greet(gateway: { readonly proxy: number }, target: string, servername: string) {
    const { socket } = await peers.tunnel(gateway.proxy, target);
    const secure = connectTls({
      socket,
      servername,
      ca: certificate.cert,
      checkServerIdentity: () => undefined,
    });
    return text(secure);
  }

  const greeter = () => peers.listen(createTlsServer(certificate, (socket) => socket.end('hello')));

  test('passes where it names the host of the tunnel, or another one that is allowed', async () => {
    const gateway = await peers.gateway({
      hosts: ['api.example', 'other.example'],
      leadsTo: { 443: await greeter() },
    });
    expect(await greet(gateway, 'api.example:443', 'api.example')).toBe('hello');
    expect(await greet(gateway, 'api.example:443', 'other.example')).toBe('hello');
    expect(await greet(gateway, 'api.example:443', '')).toBe('hello');
  });

  test('is cut off where it names a host that is not allowed, which is recorded', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'], leadsTo: { 443: await greeter() } });
    await expect(greet(gateway, 'api.example:443', 'evil.example')).rejects.toThrow(/access denied/);
    expect(gateway.decisions().at(-1)).toMatchObject({
      decision: 'denied',
      host: 'evil.example',
      port: 443,
      via: 'proxy',
      reason: 'asked for in TLS over a connection to api.example: the profile does not list evil.example',
    });
  });
});

describe('TLS that begins anew', () => {
  const CIPHERS = Buffer.from([20, 3, 3, 0, 1, 1]);
  const EARLY = Buffer.from([23, 3, 3, 0, 1, 0]);

  /** What the server is sent by a client that names the one host and, asked or not, the other one. */
  async function heardOf(
    names: readonly [string, string],
    waits: boolean,
    answer = RETRY_REQUEST,
  ): Promise<Buffer> {
    const [first, second] = [
      await peers.hello({ servername: names[0] }),
      await peers.hello({ servername: names[1] }),
    ];
    const heard = Promise.withResolvers<Buffer>();
    const port = await peers.tcp((server) => {
      const parts: Buffer[] = [];
      server.once('data', () => server.write(answer));
      server.on('data', (part: Buffer) => void parts.push(part));
      server.once('close', () => heard.resolve(Buffer.concat(parts)));
      server.once('end', () => void server.end());
    });
    const gateway = await peers.gateway({ hosts: ['api.example', 'other.example'], leadsTo: { 443: port } });
    const { socket } = await peers.tunnel(gateway.proxy, 'api.example:443');
    socket.on('data', () => {});
    socket.write(first);
    if (waits) await once(socket, 'data');
    socket.end(Buffer.concat([EARLY, CIPHERS, second]));
    return heard.promise;
  }

  test.each([true, false])(
    'is judged by its second name too, whether the client waits for the server (%s)',
    async (waits) => {
      expect((await heardOf(['api.example', 'other.example'], waits)).includes('other.example')).toBe(true);
      const heard = await heardOf(['api.example', 'evil.example'], waits);
      expect(heard.includes('api.example')).toBe(true);
      expect(heard.includes('evil.example')).toBe(false);
    },
  );

  test('is none where the server does not ask for it, and what the client says then passes', async () => {
    const plain = Buffer.from(RETRY_REQUEST).fill(1, 11, 43);
    expect((await heardOf(['api.example', 'evil.example'], true, plain)).includes('evil.example')).toBe(true);
  });
});

describe('the address of a name', () => {
  test('that is private is not connected to, whatever else the name leads to', async () => {
    const names = { 'rebound.example': ['93.184.216.34', '10.0.0.7'] };
    const gateway = await peers.gateway({ allowAll: true, names });
    const { status, body } = await peers.ask(gateway.proxy, 'http://rebound.example/');
    expect(status).toBe(403);
    expect(body).toContain('rebound.example leads to 10.0.0.7, which is a private address');
    expect(gateway.connected).toEqual([]);
  });

  test.each(['127.0.0.1', '::1', '169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254', '0.0.0.0'])(
    '%s is never connected to',
    async (address) => {
      const gateway = await peers.gateway({
        allowAll: true,
        hosts: ['x.example'],
        names: { 'x.example': [address] },
      });
      expect((await peers.ask(gateway.proxy, 'http://x.example/')).status).toBe(403);
      expect(gateway.connected).toEqual([]);
    },
  );

  test('is asked for once: the connection goes to what was judged, in the spelling that was judged', async () => {
    const gateway = await peers.gateway({
      hosts: ['a.example'],
      names: { 'a.example': ['::ffff:93.184.216.34', '2606:4700:0::1'] },
      leadsTo: { 80: await echo() },
    });
    expect((await peers.ask(gateway.proxy, 'http://a.example/')).status).toBe(200);
    expect(gateway.resolved).toEqual(['a.example']);
    expect(gateway.connected).toEqual(['93.184.216.34,2606:4700::1 80']);
  });
});
