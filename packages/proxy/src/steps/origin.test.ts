import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ask } from '../doubles/http-client.ts';
import { runningProxy } from '../doubles/running-proxy.ts';
import { scriptedServer } from '../doubles/scripted-server.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };
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
    ['a name that points here', { Host: '127.0.0.1.nip.example:PORT' }, 403],
    ['the address as one number', { Host: '2130706433:PORT' }, 403],
    ['the address in octal', { Host: '0177.0.0.1:PORT' }, 403],
    ['the address in hex', { Host: '0x7f.0.0.1:PORT' }, 403],
    ['the address cut short', { Host: '127.1:PORT' }, 403],
    ['the address mapped into IPv6', { Host: '[::ffff:127.0.0.1]:PORT' }, 403],
    ['an address of the network', { Host: '192.0.2.7:PORT' }, 403],
    ['a dot behind the name', { Host: 'localhost.:PORT' }, 403],
    ['user-info in the host', { Host: 'evil.example@127.0.0.1:PORT' }, 403],
    ['two hosts in one header', { Host: '127.0.0.1:PORT, evil.example' }, 403],
    [
      'a foreign host and a forwarded one of ours',
      { Host: 'evil.example', 'X-Forwarded-Host': '127.0.0.1:PORT' },
      403,
    ],
    ['an origin with a path', { Origin: 'http://localhost:PORT/' }, 403],
    ['an origin with a dot behind', { Origin: 'http://localhost.:PORT' }, 403],
    ['an extension', { Origin: 'chrome-extension://abcdef' }, 403],
    ['an empty origin', { Origin: '' }, 403],
    ['a page of an address of the network', { Origin: 'http://192.0.2.7:PORT' }, 403],
    [
      'a foreign origin and a referrer of ours',
      { Origin: 'http://evil.example', Referer: 'http://localhost:PORT/' },
      403,
    ],
    ['two origins in one header', { Origin: 'http://localhost:PORT http://evil.example' }, 403],
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

describe('a page that asks without an Origin', () => {
  test.each([
    ['cross-site', true],
    ['same-site', true],
    ['same-origin', false],
    ['none', false],
  ])('from a site that the browser calls %s is refused: %s', async (site, isRefused) => {
    await using proxy = await runningProxy(scriptedServer());
    const headers = { 'Sec-Fetch-Site': site };
    expect((await ask(proxy.url, { method: 'GET', headers })).status === 403).toBe(isRefused);
  });
});

describe('beyond loopback', () => {
  const beyond = { host: '0.0.0.0', allowedOrigins: ['https://App.example', 'http://box.lan:8080'] };
  test.each([
    ['an address', { Host: '192.0.2.7:PORT' }, 200],
    ['an address and the port that a tunnel gave it', { Host: '192.0.2.7:1' }, 200],
    ['an IPv6 address', { Host: '[2001:db8::1]:PORT' }, 200],
    ['localhost', { Host: 'localhost:PORT' }, 200],
    ['a listed name', { Host: 'box.lan:8080' }, 200],
    ['a listed name without its port', { Host: 'box.lan' }, 200],
    ['a name of whoever', { Host: 'evil.example' }, 403],
    ['a name of whoever with our port', { Host: 'evil.example:PORT' }, 403],
    ['an address with a name behind it', { Host: '192.0.2.7.evil.example:PORT' }, 403],
    ['an address as one number', { Host: '2130706433:PORT' }, 403],
    ['an address with user-info', { Host: 'a@192.0.2.7:PORT' }, 403],
    ['a page of the address itself', { Host: '192.0.2.7:PORT', Origin: 'http://192.0.2.7:PORT' }, 200],
    ['a page of ours by localhost', { Host: '127.0.0.1:PORT', Origin: 'http://localhost:PORT' }, 200],
    ['a listed page', { Host: '192.0.2.7:PORT', Origin: 'https://app.example' }, 200],
    ['a page of another address', { Host: '192.0.2.7:PORT', Origin: 'http://198.51.100.9:PORT' }, 403],
    ['a page of another port', { Host: '192.0.2.7:PORT', Origin: 'http://192.0.2.7:1' }, 403],
    [
      'a page of another port by the name it calls',
      { Host: '192.0.2.7:1', Origin: 'http://192.0.2.7:1' },
      403,
    ],
    ['a foreign page', { Host: '192.0.2.7:PORT', Origin: 'http://evil.example' }, 403],
    ['a rebound page', { Host: 'evil.example:PORT', Origin: 'http://evil.example:PORT' }, 403],
    ['a page without an origin', { Host: '192.0.2.7:PORT', Origin: 'null' }, 403],
    ['an extension', { Host: '192.0.2.7:PORT', Origin: 'chrome-extension://abcdef' }, 403],
  ])('%s gets the answer it should', async (...[, headers, status]) => {
    await using proxy = await runningProxy(scriptedServer(), beyond);
    const sent = Object.entries(headers).map(([name, value]) => [
      name,
      value.replace('PORT', String(proxy.port)),
    ]);
    const answer = await ask(proxy.url, {
      body: PING,
      headers: { ...JSON_TYPE, ...Object.fromEntries(sent) },
    });
    expect(answer.status).toBe(status);
  });

  test('no web page calls a tool with a request that needs no preflight', async () => {
    for (const host of ['0.0.0.0', '127.0.0.1']) {
      const server = scriptedServer();
      await using proxy = await runningProxy(server, { host });
      const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}';
      for (const type of [
        'text/plain',
        'text/plain;application/json',
        'application/x-www-form-urlencoded',
        undefined,
      ]) {
        const headers = type === undefined ? {} : { 'Content-Type': type };
        expect((await ask(proxy.url, { body, headers })).status, `${host} ${type}`).toBe(415);
      }
      expect(server.received).toEqual([]);
    }
  });
});

describe('the request line', () => {
  const raw = async (port: number, lines: readonly string[]): Promise<string> => {
    const socket = connect(port, '127.0.0.1');
    socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket.setEncoding('utf8')) text += String(chunk);
    return text;
  };

  test('two Host headers are refused, whichever of them is ours', async () => {
    await using proxy = await runningProxy(scriptedServer());
    const own = `Host: 127.0.0.1:${proxy.port}`;
    for (const hosts of [
      [own, 'Host: evil.example'],
      ['host: evil.example', own],
      [own, own],
    ]) {
      expect(await raw(proxy.port, ['GET /health HTTP/1.1', ...hosts])).toMatch(/^HTTP\/1.1 400 /u);
    }
  });

  test('the absolute form is taken as RFC 9112 asks, and its host is looked at', async () => {
    await using proxy = await runningProxy(scriptedServer());
    const own = `127.0.0.1:${proxy.port}`;
    const status = async (target: string, host = own): Promise<string | undefined> =>
      (await raw(proxy.port, [`GET ${target} HTTP/1.1`, `Host: ${host}`])).split(' ', 2)[1];
    expect(await status(`http://${own}/health`)).toBe('200');
    expect(await status(`HTTP://${own}/health?x=1`)).toBe('200');
    expect(await status(`http://${own}`)).toBe('404');
    expect(await status('http://evil.example/health')).toBe('403');
    expect(await status(`http://a@${own}/health`)).toBe('403');
    expect(await status(`http://${own}/health`, 'evil.example')).toBe('403');
    expect(await status(`https://${own}/health`)).toBe('404');
  });
});
