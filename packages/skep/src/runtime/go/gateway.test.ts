import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http, { type IncomingMessage, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { host } from '../gateway/host.fixture.ts';
import { goGateway } from './gateway.ts';
import { GoProxies } from './proxies.ts';
import type { GoSettings } from './toolchain.ts';

const having =
  (files: Readonly<Record<string, string>>): RequestListener =>
  ({ url = '' }, response) => {
    const content = files[url];
    response.writeHead(content === undefined ? 404 : 200).end(content);
  };

const SETTINGS: GoSettings = { GOPROXY: '', GOSUMDB: 'off', GONOSUMDB: '', GONOPROXY: '' };

/** The proxies of a person with these settings, and a gateway to them. */
async function gatewayFor(settings: Partial<GoSettings>, maxBytes?: number) {
  const home = await mkdtemp(path.join(tmpdir(), 'skep-gateway-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const environment = { env: {}, home } as unknown as RuntimeEnvironment;
  const proxies = await GoProxies.open(environment, { ...SETTINGS, ...settings }, undefined);
  onTestFinished(() => proxies[Symbol.dispose]());
  const options = { proxies, onDownload: () => {} };
  const gateway = goGateway(maxBytes === undefined ? options : { ...options, maxBytes });
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
  const resolve = (name: string, version?: string) =>
    proxies.resolve(
      { kind: 'package', ecosystem: 'go', name, ...(version && { version }) },
      new AbortController().signal,
    );
  return { gateway, get, resolve };
}

test('files of modules come from the first proxy that has them', async () => {
  const first = await host(having({}));
  const second = await host(having({ '/h.test/!up/@v/v1.0.0.zip': 'zip' }));
  const third = await host(having({}));
  const { get } = await gatewayFor({ GOPROXY: `${first.url},${second.url},direct,${third.url}` });
  expect(await get('/h.test/!up/@v/v1.0.0.zip')).toEqual({ status: 200, body: 'zip' });
  expect((await get('/h.test/other/@v/list')).status).toBe(404);
  expect(Object.keys(third.logins)).toEqual([]);
});

test.each([
  [',', 502],
  ['|', 200],
])('a proxy that fails is followed by the next one only behind a bar: %j', async (separator, status) => {
  const failing = await host((_request, response) => void response.writeHead(503).end());
  const sound = await host(having({ '/h.test/x/@v/list': 'v1.0.0' }));
  const { get } = await gatewayFor({ GOPROXY: `${failing.url}${separator}${sound.url}` });
  expect((await get('/h.test/x/@v/list')).status).toBe(status);
});

test.each([
  ['GET', '/h.test/x/@v/../../secret.zip', 404],
  ['GET', '/h.test/../secret/@v/list', 404],
  ['GET', '/%2e%2e/secret/@v/list', 404],
  ['GET', '/h.test/x/@v/v1.0.0.exe', 404],
  ['GET', '/h.test/x', 404],
  ['GET', '/sumdb/other.test/lookup/h.test/x@v1.0.0', 404],
  ['GET', '/sumdb/sum.test/../../secret', 404],
  ['GET', 'http://169.254.169.254/', 404],
  ['POST', '/h.test/x/@v/list', 405],
])('nothing is reached by %s %s', async (method, url, status) => {
  const proxy = await host((_request, response) => void response.end('x'));
  const { get } = await gatewayFor({ GOPROXY: proxy.url, GOSUMDB: 'sum.test' });
  expect((await get(url, method)).status).toBe(status);
  expect(proxy.logins).toEqual({});
});

test('the checksum database is reached through a proxy that passes it on, or by itself', async () => {
  const passes = await host(
    having({ '/sumdb/sum.test/supported': '', '/sumdb/sum.test/latest': 'passed on' }),
  );
  const database = await host(having({ '/latest': 'by itself' }));
  const plain = await host(having({}));
  const GOSUMDB = `sum.test+0123+key ${database.url}`;
  const through = await gatewayFor({ GOPROXY: passes.url, GOSUMDB });
  expect((await through.get('/sumdb/sum.test/latest')).body).toBe('passed on');
  const direct = await gatewayFor({ GOPROXY: plain.url, GOSUMDB });
  expect((await direct.get('/sumdb/sum.test/supported')).status).toBe(200);
  expect((await direct.get('/sumdb/sum.test/latest')).body).toBe('by itself');
});

test('no proxy is asked for what is private, which is told', async () => {
  const proxy = await host((_request, response) => void response.end('x'));
  const { get, gateway } = await gatewayFor({ GOPROXY: proxy.url, GONOPROXY: 'h.test/team' });
  expect((await get('/h.test/team/x/@v/list')).status).toBe(502);
  expect(proxy.logins).toEqual({});
  expect(gateway.failure?.message).toContain('module "h.test/team/x" is private');
});

test('modules are bounded together', async () => {
  const proxy = await host(having({ '/h.test/x/@v/v1.0.0.zip': '12345' }));
  const { get } = await gatewayFor({ GOPROXY: proxy.url }, 9);
  expect((await get('/h.test/x/@v/v1.0.0.zip')).body).toBe('12345');
  expect((await get('/h.test/x/@v/v1.0.0.zip')).body).toBe('broken off');
});

test('a login goes to the proxy that it is for', async () => {
  const other = await host(having({ '/x': 'x' }));
  const proxy = await host((_request, response) => void response.writeHead(302, { location: `${other.url}x` }).end()); // prettier-ignore
  const { get } = await gatewayFor({ GOPROXY: proxy.url.replace('//', '//me:pa55@') });
  expect((await get('/h.test/x/@v/list')).body).toBe('x');
  const basic = `Basic ${Buffer.from('me:pa55').toString('base64')}`;
  expect([proxy.logins, other.logins]).toEqual([{ '/h.test/x/@v/list': basic }, { '/x': undefined }]);
});

test('a package means the newest version of the module that it is in', async () => {
  const proxy = await host(
    having({
      '/h.test/x/@v/list': 'v1.0.0\nv1.2.0\nv1.10.0\n',
      '/h.test/x/@v/v1.10.0.mod': 'module h.test/x\nretract v1.10.0\n',
      '/h.test/x/@v/main.info': '{"Version":"v1.2.1-0.20260101000000-0123456789ab"}',
      '/h.test/y/@v/list': '',
      '/h.test/y/@latest': '{"Version":"v0.0.0-20260101000000-0123456789ab"}',
      '/h.test/z/@latest': '{"Version":"--flag"}',
    }),
  );
  const { resolve } = await gatewayFor({ GOPROXY: proxy.url });
  expect(await resolve('h.test/x/cmd/server')).toBe('v1.2.0');
  expect(await resolve('h.test/x', 'main')).toBe('v1.2.1-0.20260101000000-0123456789ab');
  expect(await resolve('h.test/y')).toBe('v0.0.0-20260101000000-0123456789ab');
  await expect(resolve('h.test/z')).rejects.toMatchObject({ code: 'runtime/package-not-found' });
  await expect(resolve('h.test/x', 'v9.9.9')).rejects.toMatchObject({ code: 'runtime/package-not-found' });
});

test.each(['ftp://h.test', '/srv/modules', 'file:///srv/modules'])(
  'GOPROXY=%s is refused',
  async (GOPROXY) => {
    await expect(gatewayFor({ GOPROXY })).rejects.toMatchObject({ code: 'config/invalid' });
  },
);
