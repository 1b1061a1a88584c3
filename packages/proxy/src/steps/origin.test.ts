import { describe, expect, test } from 'vitest';
import { ask } from '../doubles/http-client.ts';
import { runningProxy } from '../doubles/running-proxy.ts';
import { scriptedServer } from '../doubles/scripted-server.ts';
import { allowedBy } from './origin.ts';

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

describe('a proxy on loopback', () => {
  test.each([
    ['no Origin', {}, 200],
    ['its own origin', { Origin: 'http://localhost:PORT' }, 200],
    ['its own origin in capitals', { Origin: 'HTTP://LocalHost:PORT' }, 200],
    ['its own origin by IPv6', { Origin: 'http://[::1]:PORT' }, 200],
    ['a foreign origin', { Origin: 'http://evil.example' }, 403],
    ['another port', { Origin: 'http://localhost:1' }, 403],
    ['no port', { Origin: 'http://localhost' }, 403],
    ['another scheme', { Origin: 'https://localhost:PORT' }, 403],
    ['null', { Origin: 'null' }, 403],
    ['user-info', { Origin: 'http://a@localhost:PORT' }, 403],
    ['two origins', { Origin: ['http://localhost:PORT', 'http://evil.example'] }, 403],
    ['the host name alone', { Host: 'localhost' }, 200],
    ['a foreign host', { Host: 'evil.example' }, 403],
    ['a foreign host that looks like ours', { Host: 'localhost.evil.example:PORT' }, 403],
    ['another port as host', { Host: '127.0.0.1:1' }, 403],
  ])('with %s answers %s', async (...[, headers, status]) => {
    await using proxy = await runningProxy(scriptedServer());
    const own = (value: string): string => value.replace('PORT', String(proxy.port));
    const sent = Object.fromEntries(
      Object.entries<string | string[]>(headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.map(own) : own(value),
      ]),
    );
    for (const path of ['/mcp', '/health', '/metrics', '/.well-known/x', '/nowhere']) {
      const answer = await ask(proxy.origin + path, { body: PING, headers: sent });
      if (status === 403) {
        expect(answer.status, path).toBe(403);
        expect(JSON.parse(answer.text).error).toMatchObject({ code: -32600 });
      } else expect(answer.status, path).not.toBe(403);
    }
  });

  test('a preflight of its own origin is answered before anything else', async () => {
    await using proxy = await runningProxy(scriptedServer());
    const origin = `http://localhost:${proxy.port}`;
    const answer = await ask(proxy.url, {
      method: 'OPTIONS',
      headers: { Origin: origin, 'Access-Control-Request-Headers': 'mcp-param-city, x-evil' },
    });
    expect(answer.status).toBe(204);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': origin,
      vary: 'Origin',
      'access-control-max-age': '86400',
    });
    expect(answer.headers['access-control-allow-headers']).toMatch(/Mcp-Session-Id.*, mcp-param-city$/u);
  });

  test('replies to its own origin may be read by the page', async () => {
    await using proxy = await runningProxy(scriptedServer());
    const origin = `http://127.0.0.1:${proxy.port}`;
    const { headers } = await ask(proxy.url, { body: PING, headers: { Origin: origin } });
    expect(headers['access-control-allow-origin']).toBe(origin);
    expect(headers['access-control-expose-headers']).toContain('Mcp-Session-Id');
  });

  test('OPTIONS without an Origin is 405', async () => {
    await using proxy = await runningProxy(scriptedServer());
    expect((await ask(proxy.url, { method: 'OPTIONS', headers: {} })).status).toBe(405);
  });
});

describe('the allow-list', () => {
  const settings = { bindHost: '127.0.0.1', port: 1, allowedOrigins: undefined, trustProxyHeaders: false };

  test('is off beyond loopback unless origins are given', () => {
    expect(allowedBy({ ...settings, bindHost: '0.0.0.0' })).toEqual({ origins: undefined, hosts: undefined });
    const given = allowedBy({ ...settings, bindHost: '0.0.0.0', allowedOrigins: ['https://App.Example'] });
    expect([...(given.origins ?? [])]).toEqual(['https://app.example']);
    expect(given.hosts?.has('app.example')).toBe(true);
  });

  test('takes hosts of given origins on loopback only from a trusted proxy', () => {
    const allowedOrigins = ['https://app.example'];
    expect(allowedBy({ ...settings, allowedOrigins }).hosts?.has('app.example')).toBe(false);
    expect(
      allowedBy({ ...settings, allowedOrigins, trustProxyHeaders: true }).hosts?.has('app.example'),
    ).toBe(true);
  });
});
