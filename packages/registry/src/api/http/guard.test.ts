import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import { apiUnderTest } from '../api.fixture.ts';
import type { HostRules } from './guard.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

const rules: HostRules = { hosts: ['registry.lan'], origins: ['https://app.example'] };
const server = await apiUnderTest({
  snapshot: snapshotOf({ files: [storedServer('io.acme/weather')] }),
  routes: READ_ROUTES,
  listener: { hosts: () => rules },
});
const base = await server.open.listen();
const { port } = new URL(base);
afterAll(() => server.close());

const LIST = '/registry/all/v0.1/servers';
const asked = async (headers: Readonly<Record<string, string>>, url = LIST): Promise<[number, unknown]> => {
  const answer = await server.get(url, headers);
  return [answer.statusCode, answer.statusCode === 200 ? 'served' : answer.json()];
};

describe('without sign-in', () => {
  test.each([
    '127.0.0.1:8080',
    '[::1]:8080',
    '[::1]',
    '192.168.1.7',
    'localhost:8080',
    'LocalHost',
    'Registry.lan:80',
  ])('a caller reaches the server as %s', async (host) =>
    expect(await asked({ host })).toEqual([200, 'served']),
  );

  test.each([
    'evil.com',
    'evil.com:8080',
    '127.0.0.1.evil.com',
    'localhost.',
    '2130706433',
    '[evil.com]',
    'a@localhost',
  ])('a page that has resolved the name %j to this server gets nothing', async (host) =>
    expect(await asked({ host })).toEqual([403, { error: 'this host name is not served' }]),
  );

  test.each([
    ['http://localhost:8080', 'localhost:8080'],
    ['https://registry.lan', 'registry.lan'],
    ['https://app.example', 'localhost:8080'],
  ])('a page of %s may call %s', async (origin, host) => {
    expect(await asked({ host, origin })).toEqual([200, 'served']);
  });

  test.each([
    ['http://evil.com', 'localhost:8080'],
    ['http://localhost:3000', 'localhost:8080'],
    ['http://localhost', 'localhost:8080'],
    ['null', 'localhost:8080'],
    ['https://app.example.evil.com', 'localhost:8080'],
  ])('a page of %s may not call %s, whatever it asks for', async (origin, host) => {
    const refused = [403, { error: 'this origin may not call' }];
    for (const url of [LIST, '/openapi.json', '/nothing', '/v1/me']) {
      expect(await asked({ host, origin }, url)).toEqual(refused);
    }
  });

  test('a probe in HTTP/1.0 may leave the host out, but no page and no HTTP/1.1', async () => {
    const status = async (version: string, more = ''): Promise<string | undefined> => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.end(`GET ${LIST} HTTP/${version}\r\n${more}Connection: close\r\n\r\n`);
      return /^HTTP\/1\.1 (\d+)/.exec(await text(socket))?.[1];
    };
    expect(await status('1.0')).toBe('200');
    expect(await status('1.0', 'Host: evil.com\r\n')).toBe('403');
    expect(await status('1.0', 'Origin: http://evil.com\r\n')).toBe('403');
    expect(await status('1.1')).toBe('400');
  });

  test.each([
    [`http://localhost:8080${LIST}`, '200'],
    [`HTTP://Registry.lan${LIST}`, '200'],
    [`http://evil.com${LIST}`, '403'],
    [`http://a@localhost${LIST}`, '403'],
    [`https://evil.com?x${LIST}`, '403'],
    [`http://localhost?x${LIST}`, '404'],
  ])(
    'the host that the target %s names counts too, and its path alone is the path: %s',
    async (target, status) => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.end(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      expect(/^HTTP\/1\.1 (\d+)/.exec(await text(socket))?.[1]).toBe(status);
    },
  );

  test('the short way for reads is guarded as well, and two hosts are no host', async () => {
    const status = async (headers: [string, string][]): Promise<number> => {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      const flat = [...headers, ['Connection', 'close']].flat();
      const call = request({ host: '127.0.0.1', port, path: LIST, headers: flat, setHost: false });
      call
        .on('response', (answer) => resolve(answer.resume().statusCode ?? 0))
        .on('error', reject)
        .end();
      return promise;
    };
    expect(await status([['Host', 'localhost']])).toBe(200);
    expect(await status([['Host', 'evil.com']])).toBe(403);
    expect(
      await status([
        ['Host', 'localhost'],
        ['Origin', 'http://evil.com'],
      ]),
    ).toBe(403);
    expect(
      await status([
        ['Host', 'localhost'],
        ['Host', 'evil.com'],
      ]),
    ).toBe(403);
  });
});
