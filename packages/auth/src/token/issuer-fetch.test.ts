import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkIssuerUrl, createIssuerFetch, type IssuerFetch, type PlainHttp } from './issuer-fetch.ts';

describe('an address of an identity provider', () => {
  test.each<[string, PlainHttp, boolean]>([
    ['https://idp.test/realm', 'never', true],
    ['http://idp.test', 'never', false],
    ['http://localhost:8080', 'never', false],
    ['http://localhost:8080', 'loopback', true],
    ['http://127.0.0.1', 'loopback', true],
    ['http://[::1]:1', 'loopback', true],
    ['http://localhost.evil.test', 'loopback', false],
    ['http://127.0.0.1.evil.test', 'loopback', false],
    ['http://idp.test', 'any', true],
    ['ftp://idp.test', 'any', false],
    ['idp.test', 'any', false],
    ['', 'any', false],
    ['https://user@idp.test', 'any', false],
  ])('%j with plain http %s: %j', (text, plain, accepted) => {
    if (accepted) expect(checkIssuerUrl(text, plain).href).toContain('://');
    else
      expect(() => checkIssuerUrl(text, plain)).toThrow(
        expect.objectContaining({ code: 'auth/invalid-provider' }),
      );
  });
});

describe('the private-address guard', () => {
  const refused = expect.objectContaining({ code: 'fetch/refused-address' });

  test.each([
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://10.0.0.1/',
    'https://169.254.169.254/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::ffff:10.0.0.1]/',
  ])('refuses %s before connecting', async (url) => {
    const { fetch, close } = createIssuerFetch({ plainHttp: 'never', allowPrivate: false });
    await expect(fetch(url)).rejects.toEqual(refused);
    close();
  });

  test('refuses a name that leads to a private address', async () => {
    const resolve = () => Promise.resolve([{ address: '192.168.1.1', family: 4 }]);
    const { fetch, close } = createIssuerFetch({ plainHttp: 'any', allowPrivate: false, resolve });
    for (const scheme of ['http', 'https'])
      await expect(fetch(`${scheme}://idp.test/`)).rejects.toEqual(refused);
    close();
  });
});

describe('what is sent to an identity provider, and what is done with its answers', () => {
  interface Seen {
    readonly line: string;
    readonly authorization: string | undefined;
  }
  const seen: Seen[] = [];
  const server = http.createServer((request, response) => {
    seen.push({
      line: `${request.method} ${request.url}`,
      authorization: request.headers.authorization,
    });
    const { pathname } = new URL(request.url ?? '', 'http://idp.test');
    if (pathname === '/large') response.end(Buffer.alloc(2 * 1024 * 1024));
    else if (pathname === '/moved') response.writeHead(302, { location: '/elsewhere' }).end();
    else response.end('{}');
  });
  let base = '';
  let folder = '';
  const opened: IssuerFetch[] = [];
  const open = (tokenFile?: string): IssuerFetch => {
    const made = createIssuerFetch({ plainHttp: 'loopback', allowPrivate: true, tokenFile });
    opened.push(made);
    return made;
  };
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    base = `http://127.0.0.1:${typeof address === 'object' ? String(address?.port) : ''}`;
    folder = await mkdtemp(path.join(tmpdir(), 'skep-issuer-'));
  });
  afterAll(async () => {
    for (const one of opened) one.close();
    server.close();
    await rm(folder, { recursive: true });
  });

  test('its token goes with reading, as the file holds it now, and never with a token to be judged', async () => {
    const file = path.join(folder, 'token');
    const { fetch } = open(file);
    seen.length = 0;
    await writeFile(file, 'one\n');
    await fetch(`${base}/keys`);
    await writeFile(file, 'two\n');
    await fetch(`${base}/keys`);
    await fetch(`${base}/introspect`, { method: 'POST', body: new URLSearchParams({ token: 'x' }) });
    const headers = { authorization: 'Basic eA==' };
    await fetch(`${base}/introspect`, { method: 'POST', headers });
    expect(seen.map(({ authorization }) => authorization)).toEqual([
      'Bearer one',
      'Bearer two',
      undefined,
      'Basic eA==',
    ]);
  });

  test('a redirect is an answer and is not followed', async () => {
    seen.length = 0;
    expect((await open().fetch(`${base}/moved`)).status).toBe(302);
    expect(seen.map(({ line }) => line)).toEqual(['GET /moved']);
  });

  test('an answer above a megabyte is not read to its end', async () => {
    await expect(open().fetch(`${base}/large`)).rejects.toMatchObject({ code: 'fetch/too-large' });
  });
});
