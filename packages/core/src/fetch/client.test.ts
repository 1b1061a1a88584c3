import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { readCaBundle } from './ca-bundle.ts';
import { createClient, statusOf, type Client, type ClientOptions } from './client.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server on the loopback interface; returns its origin. */
async function serve(
  handler: Handler,
  start = (listener: RequestListener) => createServer(listener),
): Promise<string> {
  const server = start(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function client(options: Partial<ClientOptions> = {}): Promise<Client> {
  const made = createClient({
    timeoutMs: 5_000,
    maxBytes: 1_000,
    allowPrivate: true,
    userAgent: 'skep-test',
    ...options,
    retry: { baseMs: 1, ...options.retry },
  });
  cleanups.push(() => made.close());
  return made;
}

test('gets JSON and says who asks', async () => {
  const origin = await serve((request, response) => response.end(JSON.stringify(request.headers)));
  expect(await (await client()).getJson(`${origin}/x`)).toMatchObject({
    'user-agent': 'skep-test',
    'accept-encoding': 'identity',
    accept: 'application/json',
  });
});

test('a conditional request may be answered with 304', async () => {
  const origin = await serve((request, response) => {
    response.writeHead(request.headers['if-none-match'] === '"a"' ? 304 : 200, { etag: '"a"' }).end();
  });
  const answer = await (await client()).get(origin, { headers: { 'if-none-match': '"a"' } });
  expect(answer).toMatchObject({ status: 304, headers: { etag: '"a"' } });
});

test.each([
  ['an error', 503, {}],
  ['a redirect', 302, { location: '/there' }],
])('the body of %s is not waited for', async (_what, status, headers) => {
  let asked = 0;
  const origin = await serve((request, response) => {
    asked += 1;
    if (request.url === '/there') response.end('here');
    else response.writeHead(status, headers).write('an endless');
  });
  const answer = (await client()).get(origin);
  if (status === 302) await expect(answer).resolves.toMatchObject({ status: 200, url: `${origin}/there` });
  else await expect(answer).rejects.toMatchObject({ code: 'fetch/bad-status', detail: { status: 503 } });
  expect(asked).toBe(status === 302 ? 2 : 3);
});

describe('what an error says', () => {
  const said = async (body: string | undefined, status = 422): Promise<unknown> => {
    const origin = await serve((_request, response) => {
      response.writeHead(status);
      if (body === undefined) response.write('{"detail":"never ends"');
      else response.end(body);
    });
    const telling = await client({ tellWhatWasSaid: true });
    const error: unknown = await telling.get(`${origin}/x`).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'fetch/bad-status', detail: { status } });
    return (error as Error).message.replace(/^.*answered with status \d+/, '');
  };
  test.each([
    ['{"error":"invalid server name"}', ': invalid server name'],
    ['{"error":{"code":"x","message":"too short"}}', ': too short'],
    [
      '{"title":"Bad","detail":"validation failed","errors":[{"message":"length >= 3"}]}',
      ': validation failed: length >= 3',
    ],
    [`{"detail":"${'x'.repeat(500)}"}`, `: ${'x'.repeat(300)}`],
    ['<h1>no</h1>', ''],
    ['[1]', ''],
    ['{"detail":7,"errors":{}}', ''],
    [`{"detail":"${'x'.repeat(20_000)}"}`, ''],
  ])('%s', async (body, expected) => {
    expect(await said(body)).toBe(expected);
  });
  test('is not waited for when it never ends', async () => {
    expect(await said(undefined)).toBe('');
  });
  test('is not told of a server that nobody chose', async () => {
    const origin = await serve((_request, response) => response.writeHead(400).end('{"error":"hush"}'));
    await expect((await client()).get(origin)).rejects.toThrow(/status 400$/);
  });
});

describe('limits', () => {
  test.each([true, false])('a body over the limit is refused, announced or not (%s)', async (announced) => {
    const origin = await serve((_request, response) => {
      if (announced) response.setHeader('content-length', 2_000);
      response.write('x'.repeat(1_001));
      response.end('x'.repeat(999));
    });
    await expect((await client()).get(origin)).rejects.toMatchObject({ code: 'fetch/too-large' });
  });

  test('a body of exactly the limit is taken', async () => {
    const origin = await serve((_request, response) => response.end('x'.repeat(1_000)));
    expect((await (await client()).get(origin)).body.length).toBe(1_000);
  });

  test('a server that never finishes runs into the deadline', async () => {
    const origin = await serve((_request, response) => response.write('x'));
    await expect((await client({ timeoutMs: 50 })).get(`${origin}/p?secret=1`)).rejects.toMatchObject({
      code: 'fetch/timeout',
      message: `"${origin}/p" did not answer within 50 ms`,
    });
  });

  test("the caller's signal ends the request with its own reason", async () => {
    const abort = new AbortController();
    const origin = await serve(() => abort.abort(new Error('enough')));
    await expect((await client()).get(origin, { signal: abort.signal })).rejects.toThrow('enough');
  });
});

describe('failures', () => {
  test.each([429, 500, 502, 503, 504])('a passing failure with status %i is tried again', async (status) => {
    let calls = 0;
    const origin = await serve((_request, response) => {
      calls += 1;
      response.writeHead(calls < 3 ? status : 200).end('{}');
    });
    expect(await (await client()).getJson(origin)).toEqual({});
    expect(calls).toBe(3);
  });

  test('404 is final and can be told apart', async () => {
    let calls = 0;
    const origin = await serve((_request, response) => {
      calls += 1;
      response.writeHead(404).end();
    });
    const error: unknown = await (await client()).get(`${origin}/x`).catch((caught: unknown) => caught);
    expect(statusOf(error)).toBe(404);
    expect(error).toMatchObject({ message: `"${origin}/x" answered with status 404` });
    expect(calls).toBe(1);
  });

  test('a port where nobody listens is named', async () => {
    const origin = await serve(() => {});
    await cleanups.pop()?.();
    await expect((await client()).get(origin)).rejects.toMatchObject({
      code: 'fetch/unreachable',
      message: `cannot reach "${origin}/": ECONNREFUSED`,
    });
  });

  test('an answer that is no JSON says where it breaks', async () => {
    const origin = await serve((_request, response) => response.end('<html>'));
    await expect((await client()).getJson(origin)).rejects.toMatchObject({
      code: 'fetch/not-json',
      message: `"${origin}/" did not answer with JSON (line 1, column 1)`,
    });
  });

  test.each(['ftp://x/', 'nonsense', 'file:///etc/passwd'])('%s is no URL to fetch', async (url) => {
    await expect((await client()).get(url)).rejects.toMatchObject({ code: 'fetch/invalid-url' });
  });
});

describe('redirects', () => {
  test('credentials stay with the origin they were meant for', async () => {
    const other = await serve((request, response) => response.end(JSON.stringify(request.headers)));
    const origin = await serve((_request, response) =>
      response.writeHead(302, { location: `${other}/y` }).end(),
    );
    const headers = { authorization: 'Bearer x', 'x-kept': '1' };
    const answer = await (await client()).getJson(origin, { headers });
    expect(answer).toMatchObject({ 'x-kept': '1' });
    expect(answer).not.toHaveProperty('authorization');
  });

  test('a loop ends', async () => {
    const origin = await serve((_request, response) => response.writeHead(302, { location: '/' }).end());
    await expect((await client()).get(origin)).rejects.toThrow('redirects too often');
  });

  test('another scheme is refused', async () => {
    const origin = await serve((_request, response) =>
      response.writeHead(302, { location: 'file:///x' }).end(),
    );
    await expect((await client()).get(origin)).rejects.toMatchObject({ code: 'fetch/invalid-url' });
  });
});

describe('without private addresses', () => {
  test.each(['127.0.0.1', 'localhost'])('%s is refused before anything is sent', async (host) => {
    let calls = 0;
    const origin = await serve((_request, response) => {
      calls += 1;
      response.end();
    });
    const url = origin.replace('127.0.0.1', host);
    await expect((await client({ allowPrivate: false })).get(url)).rejects.toMatchObject({
      code: 'fetch/refused-address',
    });
    expect(calls).toBe(0);
  });

  test('a public name that resolves to a private address is refused', async () => {
    const resolve = () => Promise.resolve([{ address: '192.168.0.1', family: 4 }]);
    await expect(
      (await client({ allowPrivate: false, resolve })).get('http://public.test/'),
    ).rejects.toMatchObject({ code: 'fetch/refused-address' });
  });
});

describe('CA bundle', () => {
  async function authority(): Promise<{ dir: string; key: string; cert: string; path: string }> {
    const dir = await mkdtemp(join(tmpdir(), 'skep-ca-'));
    cleanups.push(() => rm(dir, { recursive: true }));
    const path = join(dir, 'cert.pem');
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const files = ['-keyout', join(dir, 'key.pem'), '-out', path];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
    execFileSync('openssl', ['req', '-x509', ...curve, '-nodes', '-days', '1', ...subject, ...files], {
      stdio: 'ignore',
    });
    return {
      dir,
      path,
      cert: await readFile(path, 'utf8'),
      key: await readFile(join(dir, 'key.pem'), 'utf8'),
    };
  }

  test('makes its authority trusted, which it is not otherwise', async () => {
    const { key, cert, path } = await authority();
    const origin = await serve(
      (_request, response) => response.end('{}'),
      (listener) => createTlsServer({ key, cert }, listener),
    );
    const url = origin.replace('http:', 'https:');
    await expect((await client()).get(url)).rejects.toMatchObject({ code: 'fetch/unreachable' });
    expect(await (await client({ ca: await readCaBundle(path) })).getJson(url)).toEqual({});
  });

  test.each([
    ['no PEM at all', 'holds no certificate'],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----', 'certificate 1 of CA bundle'],
  ])('%j is refused', async (text, message) => {
    const dir = await mkdtemp(join(tmpdir(), 'skep-ca-'));
    cleanups.push(() => rm(dir, { recursive: true }));
    await writeFile(join(dir, 'x.pem'), text);
    await expect(readCaBundle(join(dir, 'x.pem'))).rejects.toThrow(message);
  });
});
