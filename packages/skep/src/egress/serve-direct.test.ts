import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { certificateFor, Peers, RETRY_REQUEST } from './peers.fixture.ts';

const peers = new Peers();
afterEach(() => peers.end());

describe('TLS without a proxy', () => {
  const certificate = certificateFor('api.example');
  const greeter = () => peers.listen(createTlsServer(certificate, (socket) => socket.end('hello')));
  const greet = (port: number, servername: string) =>
    text(
      connectTls({
        host: '127.0.0.1',
        port,
        servername,
        ca: certificate.cert,
        checkServerIdentity: () => undefined,
      }),
    );

  test('reaches port 443 of the host that it names', async () => {
    const gateway = await peers.gateway({
      hosts: ['api.example'],
      ports: [443],
      leadsTo: { 443: await greeter() },
    });
    expect(await greet(gateway.tls, 'api.example')).toBe('hello');
    expect(gateway.connected).toEqual(['93.184.216.34 443']);
    expect(gateway.decisions()).toMatchObject([
      { decision: 'allowed', host: 'api.example', port: 443, via: 'direct' },
    ]);
  });

  test('is told to go where it names another', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'] });
    await expect(greet(gateway.tls, 'evil.example')).rejects.toThrow(/access denied/);
    expect(gateway.resolved).toEqual([]);
    expect(gateway.decisions()).toMatchObject([
      { decision: 'denied', host: 'evil.example', port: 443, via: 'direct' },
    ]);
  });

  test('is cut off where it names another once the server asks again', async () => {
    const port = await peers.tcp((socket) => void socket.once('data', () => socket.write(RETRY_REQUEST)));
    const gateway = await peers.gateway({ hosts: ['api.example'], leadsTo: { 443: port } });
    const socket = peers.connect(gateway.tls);
    socket.write(await peers.hello({ servername: 'api.example' }));
    await once(socket, 'data');
    socket.write(await peers.hello({ servername: 'evil.example' }));
    await once(socket, 'end');
    expect(gateway.decisions().at(-1)).toMatchObject({
      decision: 'denied',
      host: 'evil.example',
      port: 443,
      via: 'direct',
    });
  });

  test('and where it names none', async () => {
    const gateway = await peers.gateway({ allowAll: true });
    await expect(greet(gateway.tls, '')).rejects.toThrow(/access denied/);
    expect(gateway.decisions()).toMatchObject([{ decision: 'denied', host: '?', port: 443, via: 'direct' }]);
  });

  test('another protocol is closed', async () => {
    const gateway = await peers.gateway({ allowAll: true });
    await peers.say(gateway.tls, 'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n');
    expect(gateway.decisions()).toMatchObject([{ decision: 'denied', host: '?' }]);
    expect(gateway.connected).toEqual([]);
  });
});

describe('HTTP without a proxy', () => {
  test('reaches port 80 of the host in Host', async () => {
    const port = await peers.http((req, res) => res.end(`${req.headers.host} ${req.url}`));
    const gateway = await peers.gateway({ hosts: ['api.example'], leadsTo: { 80: port } });
    const { body } = await peers.ask(gateway.http, '/x?y', { host: 'API.example.' });
    expect(body).toBe('api.example /x?y');
    expect(gateway.decisions()).toMatchObject([
      { decision: 'allowed', host: 'api.example', port: 80, via: 'direct' },
    ]);
  });

  test('is refused for another', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'] });
    const { status, body } = await peers.ask(gateway.http, '/', { host: 'evil.example' });
    expect(status).toBe(403);
    expect(body).toContain('skep permit demo evil.example:80');
  });

  test.each([
    ['two of Host', 'GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\nConnection: close\r\n\r\n'],
    ['another port', 'GET / HTTP/1.1\r\nHost: a.example:22\r\nConnection: close\r\n\r\n'],
    ['an absolute address', 'GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n'],
    ['an address in Host', 'GET / HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\n\r\n'],
  ])('%s is refused', async (_what, said) => {
    const gateway = await peers.gateway({ allowAll: true });
    expect(await peers.say(gateway.http, said)).toMatch(/^HTTP\/1\.1 40[03] /);
    expect(gateway.connected).toEqual([]);
  });
});
