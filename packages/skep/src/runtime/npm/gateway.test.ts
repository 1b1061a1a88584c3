import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http, { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import type { PackageGateway } from '../gateway/gateway.ts';
import { npmGateway } from './gateway.ts';
import { Upstream } from './upstream.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A server on loopback with the Authorization header of every request by path. */
async function host(handler: RequestListener) {
  const logins: Record<string, string | undefined> = {};
  const server = createServer((request, response) => {
    logins[request.url ?? ''] = request.headers.authorization;
    handler(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
    return once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, logins };
}

interface Opened {
  readonly gateway: PackageGateway;
  readonly downloads: readonly number[];
  readonly get: (path: string, options?: http.RequestOptions) => Promise<{ status: number; body: string }>;
}

/** A gateway to what a person with this `.npmrc` has, and a way to ask it. */
async function gatewayFor(npmrc: string): Promise<Opened> {
  const home = await mkdtemp(path.join(tmpdir(), 'skep-gateway-'));
  ends.push(() => rm(home, { recursive: true, force: true }));
  await writeFile(path.join(home, '.npmrc'), npmrc);
  const environment = { env: {}, home, execPath: '/nowhere/bin/node' } as RuntimeEnvironment;
  const upstream = await Upstream.open(environment, undefined);
  ends.push(() => upstream[Symbol.dispose]());
  const downloads: number[] = [];
  const onDownload = (count: number) => void downloads.push(count);
  const gateway = npmGateway({ upstream, address: 'http://inside/', onDownload });
  ends.push(() => gateway[Symbol.asyncDispose]());
  const socketPath = path.join(home, 'socket');
  await gateway.listen(socketPath);
  const get = async (url: string, options: http.RequestOptions = {}) => {
    const request = http.request({ socketPath, path: url, ...options }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return { status: response.statusCode ?? 0, body: await text(response) };
  };
  return { gateway, downloads, get };
}

const document = (name: string, tarball: string) =>
  JSON.stringify({ name, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { dist: { tarball } } } });

describe('what is confined', () => {
  test('reaches tarballs wherever the registry says that they lie, and never sees where', async () => {
    const cdn = await host((_request, response) => void response.end('tarball'));
    const registry = await host((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(gzipSync(document('@s/x', `${cdn.url}files/x.tgz?signature=1`)));
    });
    const { get, downloads } = await gatewayFor(`registry=${registry.url}`);
    const { body } = await get('/@s%2fx');
    expect(body).not.toContain(new URL(cdn.url).host);
    expect(JSON.parse(body)).toMatchObject({
      versions: { '1.0.0': { dist: { tarball: 'http://inside/-/@s/x/1.0.0.tgz' } } },
    });
    expect(await get('/-/@s/x/1.0.0.tgz')).toEqual({ status: 200, body: 'tarball' });
    expect(downloads).toEqual([1]);
  });

  test.each([
    ['GET', '/-/x/1.0.0.tgz', 404],
    ['GET', '/-/npm/v1/user', 404],
    ['GET', '/../secret', 404],
    ['GET', '/%2e%2e%2fsecret', 404],
    ['GET', 'http://169.254.169.254/', 404],
    ['GET', '/%', 502],
    ['PUT', '/x', 405],
    ['POST', '/-/npm/v1/security/audits', 405],
  ])('reaches nothing by %s %s', async (method, url, status) => {
    const registry = await host((_request, response) => void response.end('{}'));
    const { get } = await gatewayFor(`registry=${registry.url}`);
    expect((await get(url, { method })).status).toBe(status);
    expect(registry.logins).toEqual({});
  });

  test('gets packages of a scope from the registry of that scope', async () => {
    const general = await host((_request, response) => void response.end(document('x', '')));
    const scoped = await host((_request, response) => void response.end(document('@s/x', '')));
    const { get } = await gatewayFor(`registry=${general.url}\n@s:registry=${scoped.url}`);
    await Promise.all([get('/x'), get('/@s%2fx'), get('/@other%2fx')]);
    expect(Object.keys(general.logins).toSorted()).toEqual(['/@other%2fx', '/x']);
    expect(Object.keys(scoped.logins)).toEqual(['/@s%2fx']);
  });
});

describe('a login', () => {
  test('goes to the place that it is set for, and to no other host by redirect or as the place of a tarball', async () => {
    const cdn = await host((_request, response) => void response.end('tarball'));
    const registry = await host(({ url }, response) => {
      if (url === '/x') response.end(document('x', `${cdn.url}x.tgz`));
      else if (url === '/y') response.end(document('y', `${registry.url}y.tgz`));
      else response.writeHead(302, { location: `${cdn.url}y.tgz` }).end();
    });
    const place = registry.url.slice('http:'.length);
    const { get } = await gatewayFor(`registry=${registry.url}\n${place}:_authToken=s3cret`);
    const bodies = [
      await get('/x'),
      await get('/y'),
      await get('/-/x/1.0.0.tgz'),
      await get('/-/y/1.0.0.tgz'),
    ];
    expect(bodies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(JSON.stringify(bodies)).not.toContain('s3cret');
    expect(registry.logins).toEqual({
      '/x': 'Bearer s3cret',
      '/y': 'Bearer s3cret',
      '/y.tgz': 'Bearer s3cret',
    });
    expect(cdn.logins).toEqual({ '/x.tgz': undefined, '/y.tgz': undefined });
  });

  test('for one registry does not fetch what another one names there, itself or by redirect', async () => {
    const secret = await host(({ url }, response) => {
      if (url === '/@mine%2fown') response.end(document('@mine/own', `${secret.url}own.tgz`));
      else response.end('tarball');
    });
    const hostile = await host(({ url }, response) => {
      if (url === '/x') response.end(document('x', `${secret.url}x.tgz`));
      else if (url === '/y') response.end(document('y', `${hostile.url}y.tgz`));
      else response.writeHead(302, { location: `${secret.url}y.tgz` }).end();
    });
    const place = secret.url.slice('http:'.length);
    const { get } = await gatewayFor(
      `registry=${hostile.url}\n@mine:registry=${secret.url}\n${place}:_authToken=s3cret`,
    );
    for (const name of ['x', 'y', '@mine%2fown']) await get(`/${name}`);
    for (const name of ['x', 'y', '@mine/own']) await get(`/-/${name}/1.0.0.tgz`);
    expect(secret.logins).toEqual({
      '/x.tgz': undefined,
      '/y.tgz': undefined,
      '/@mine%2fown': 'Bearer s3cret',
      '/own.tgz': 'Bearer s3cret',
    });
  });

  test('of whoever asks is not passed on', async () => {
    const registry = await host((_request, response) => void response.end(document('x', '')));
    const { get } = await gatewayFor(`registry=${registry.url}`);
    await get('/x', { headers: { authorization: 'Bearer theirs' } });
    expect(registry.logins).toEqual({ '/x': undefined });
  });
});

describe('a failure', () => {
  test('is told with the address of the real registry, without its login', async () => {
    const registry = await host((_request, response) => void response.writeHead(403).end());
    const { get, gateway } = await gatewayFor(`registry=${registry.url.replace('//', '//u:pa55@')}`);
    expect((await get('/x')).status).toBe(502);
    expect(gateway.failure).toMatchObject({
      code: 'runtime/prefetch-failed',
      message: `the npm registry at ${registry.url} refused (403); sign in with npm login`,
    });
  });

  test('is a missing package where the registry has none of that name', async () => {
    const registry = await host((_request, response) => void response.writeHead(404).end());
    const { get, gateway } = await gatewayFor(`registry=${registry.url}`);
    expect((await get('/x')).status).toBe(404);
    expect(gateway.failure).toMatchObject({ code: 'runtime/package-not-found' });
  });

  test('that is over when npm asks again is none', async () => {
    let asked = 0;
    const registry = await host((_request, response) => {
      asked += 1;
      if (asked === 1) response.writeHead(503).end();
      else response.end(document('x', ''));
    });
    const { get, gateway } = await gatewayFor(`registry=${registry.url}`);
    expect([(await get('/x')).status, (await get('/x')).status]).toEqual([502, 200]);
    expect(gateway.failure).toBeUndefined();
  });
});
