import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http, { type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { host } from '../gateway/host.fixture.ts';
import { pythonGateway } from './gateway.ts';
import { PythonIndexes } from './indexes.ts';

const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex');

/** The page of a project `x` whose one wheel lies at an address. */
function pageOf(url: string, content = 'wheel'): string {
  const file = { filename: 'x-1.0-py3-none-any.whl', url, hashes: { sha256: sha256(content) }, 'core-metadata': { sha256: sha256('metadata') } }; // prettier-ignore
  return JSON.stringify({ files: [file] });
}

const asJson = { 'content-type': 'application/vnd.pypi.simple.v1+json' };

/** A gateway to the index at an address, for a person with these variables, and a way to ask it. */
async function gatewayFor(index: string, env: Record<string, string> = {}, maxBytes?: number) {
  const home = await mkdtemp(path.join(tmpdir(), 'skep-gateway-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const environment = { env, home } as unknown as RuntimeEnvironment;
  const indexes = await PythonIndexes.open(environment, { index }, undefined);
  onTestFinished(() => indexes[Symbol.dispose]());
  const downloads: number[] = [];
  const options = { indexes, onDownload: (count: number) => void downloads.push(count) };
  const gateway = pythonGateway(maxBytes === undefined ? options : { ...options, maxBytes });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const socketPath = path.join(home, 'socket');
  await gateway.listen(socketPath);
  const get = async (url: string, method = 'GET') => {
    const request = http.request({ socketPath, path: url, method }).end();
    try {
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      return { status: response.statusCode ?? 0, body: await text(response) };
    } catch {
      return { status: 0, body: 'broken off' };
    }
  };
  return { gateway, downloads, get };
}

const WHEEL = '/files/x/x-1.0-py3-none-any.whl';

test('files are reached wherever the index says that they lie, and nobody inside sees where', async () => {
  const cdn = await host(({ url = '' }, response) => void response.end(url.includes('.metadata') ? 'metadata' : 'wheel')); // prettier-ignore
  const index = await host((_request, response) => void response.writeHead(200, asJson).end(pageOf(`${cdn.url}deep/x.whl?signature=1`))); // prettier-ignore
  const { get, downloads } = await gatewayFor(index.url);
  expect((await get(WHEEL)).status).toBe(404);
  const { body } = await get('/simple/X/');
  expect(body).not.toContain(new URL(cdn.url).host);
  expect(body).toContain(`href="${WHEEL}#sha256=${sha256('wheel')}"`);
  expect(await get(WHEEL)).toEqual({ status: 200, body: 'wheel' });
  expect(await get(`${WHEEL}.metadata`)).toEqual({ status: 200, body: 'metadata' });
  expect(Object.keys(cdn.logins)).toEqual(['/deep/x.whl?signature=1', '/deep/x.whl.metadata?signature=1']);
  expect(downloads).toEqual([1]);
});

test.each([
  ['GET', '/files/x/other.whl', 404],
  ['GET', '/files/../secret', 404],
  ['GET', '/simple/', 404],
  ['GET', '/simple/..%2f..%2fsecret/', 404],
  ['GET', '/simple/--index-url=x/', 404],
  ['GET', 'http://169.254.169.254/', 404],
  ['GET', '/%', 502],
  ['POST', '/simple/x/', 405],
])('nothing is reached by %s %s', async (method, url, status) => {
  const index = await host((_request, response) => void response.end('{}'));
  const { get } = await gatewayFor(index.url);
  expect((await get(url, method)).status).toBe(status);
  expect(index.logins).toEqual({});
});

test('a file that is not the one of the index breaks off, which is told', async () => {
  const index = await host(({ url = '' }, response) => {
    if (url.startsWith('/x/')) response.writeHead(200, asJson).end(pageOf('/x.whl'));
    else response.end('another wheel');
  });
  const { get, gateway } = await gatewayFor(index.url);
  await get('/simple/x/');
  expect((await get(WHEEL)).body).toBe('broken off');
  expect(gateway.failure).toMatchObject({
    message: 'the file "x-1.0-py3-none-any.whl" is not the one that the package index describes',
  });
});

test('files are bounded together', async () => {
  const index = await host(({ url = '' }, response) => {
    if (url.startsWith('/x/')) response.writeHead(200, asJson).end(pageOf('/x.whl'));
    else response.end('wheel');
  });
  const { get, gateway } = await gatewayFor(index.url, {}, 9);
  await get('/simple/x/');
  expect((await get(WHEEL)).body).toBe('wheel');
  expect((await get(WHEEL)).body).toBe('broken off');
  expect(gateway.failure).toMatchObject({ message: 'its files are too large together' });
});

test('a login goes to the index that it is for, and to nothing that it names or leads to elsewhere', async () => {
  const other = await host((_request, response) => void response.end('wheel'));
  const index = await host(({ url = '' }, response) => {
    if (url === '/x/') response.writeHead(302, { location: '/real/x/' }).end();
    else response.writeHead(200, asJson).end(pageOf(`${other.url}x.whl`));
  });
  const { get } = await gatewayFor('http://unused.test/', {
    PIP_INDEX_URL: index.url.replace('//', '//me:pa55@'),
  });
  const bodies = [await get('/simple/x/'), await get(WHEEL)];
  const basic = `Basic ${Buffer.from('me:pa55').toString('base64')}`;
  expect(index.logins).toEqual({ '/x/': basic, '/real/x/': basic });
  expect(other.logins).toEqual({ '/x.whl': undefined });
  expect(JSON.stringify(bodies)).not.toContain('pa55');
});

test('a further index comes first, and the general one has what it has not', async () => {
  const extra = await host((_request, response) => void response.writeHead(404).end());
  const general = await host((_request, response) => void response.writeHead(200, asJson).end(pageOf('/x.whl'))); // prettier-ignore
  const { get, gateway } = await gatewayFor(general.url, { PIP_EXTRA_INDEX_URL: extra.url });
  expect((await get('/simple/x/')).status).toBe(200);
  expect([Object.keys(extra.logins), Object.keys(general.logins)]).toEqual([['/x/'], ['/x/']]);
  expect(gateway.failure).toBeUndefined();
});

test('a refusal is told with the address of the index, without its login', async () => {
  const index = await host((_request, response) => void response.writeHead(403).end());
  const { get, gateway } = await gatewayFor('http://unused.test/', {
    PIP_INDEX_URL: index.url.replace('//', '//u:pa55@'),
  });
  expect((await get('/simple/x/')).status).toBe(502);
  expect(gateway.failure).toMatchObject({
    code: 'runtime/prefetch-failed',
    message: `the package index at ${index.url} refused (403); sign in with its address or in ~/.netrc`,
  });
});
