import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer as createPlainServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRequester, type ClientIdentity, type Requester } from './requester.ts';

const ends: (() => unknown)[] = [];
let identity: ClientIdentity;
let requester: Requester;
beforeEach(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skep-requester-'));
  ends.push(() => rm(directory, { recursive: true }));
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const subject = ['-subj', '/CN=me', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'];
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  });
  identity = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  requester = openRequester({ allowPrivate: true, ca: [identity.cert] });
  ends.push(() => requester.close());
});
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A server that asks everyone for a certificate, and whose each caller has shown by path. */
async function host(listener: RequestListener) {
  const shown: Record<string, string | undefined> = {};
  const tls = { ...identity, requestCert: true, rejectUnauthorized: false };
  const server = createServer(tls, (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate() as { subject?: { CN?: string } };
    shown[request.url ?? ''] = subject?.CN;
    listener(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`, shown };
}

test('a client certificate is shown to the host that it is for, and to no host that this one redirects to', async () => {
  const other = await host((_request, response) => void response.end('there'));
  const own = await host((_request, response) => {
    response.writeHead(302, { location: `${other.url}moved` }).end();
  });
  const get = async (url: string) => {
    const showTo = (at: URL) => ({ headers: {}, ...(at.href.startsWith(own.url) ? { identity } : {}) });
    const signal = AbortSignal.timeout(10_000);
    const answer = await requester.send(new URL(url), { showTo, redirects: 'follow', signal });
    return text(answer.body);
  };
  // Connections are kept: the first one to the other host must not be taken for its certificate either.
  expect([await get(`${own.url}x`), await get(`${other.url}y`)]).toEqual(['there', 'there']);
  expect(own.shown).toEqual({ '/x': 'me' });
  expect(other.shown).toEqual({ '/moved': undefined, '/y': undefined });
});

test('authorities that are said to be the only ones replace all others', async () => {
  const usual = getCACertificates('default');
  setDefaultCACertificates([...usual, identity.cert]);
  ends.push(() => setDefaultCACertificates(usual));
  const { url } = await host((_request, response) => void response.end('there'));
  const get = async (asking: Requester) => {
    ends.push(() => asking.close());
    const signal = AbortSignal.timeout(10_000);
    const showTo = () => ({ headers: {} });
    return text((await asking.send(new URL(url), { showTo, redirects: 'answer', signal })).body);
  };
  const [other = ''] = usual;
  await expect(get(openRequester({ allowPrivate: true, ca: [other] }))).resolves.toBe('there');
  await expect(get(openRequester({ allowPrivate: true, onlyCa: [identity.cert] }))).resolves.toBe('there');
  await expect(get(openRequester({ allowPrivate: true, onlyCa: [other] }))).rejects.toThrow('cannot reach');
});

test('cancelling a request whose answer is there and being read harms nobody else', async () => {
  const server = createPlainServer((_request, response) => void response.end('there')).listen(0, '127.0.0.1');
  ends.push(() => server.close());
  await once(server, 'listening');
  const closed = once(server, 'connection').then(([socket]) => once(socket as Socket, 'close'));
  const uncaught: Error[] = [];
  const onUncaught = (error: Error): void => void uncaught.push(error);
  process.on('uncaughtExceptionMonitor', onUncaught);
  ends.push(() => process.off('uncaughtExceptionMonitor', onUncaught));
  const ending = new AbortController();
  const sending = { showTo: () => ({ headers: {} }), redirects: 'answer', signal: ending.signal } as const;
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const { body } = await requester.send(url, sending);
  const read = Promise.allSettled([text(body)]);
  ending.abort();
  await Promise.all([read, closed]);
  expect(uncaught).toEqual([]);
});

test('many requests over one kept connection leave no listeners on it', async () => {
  const connections = new Set<number | undefined>();
  const own = await host((request, response) => {
    connections.add(request.socket.remotePort);
    response.end('x');
  });
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  ends.push(() => process.off('warning', onWarning));
  for (let asked = 0; asked < 15; asked += 1) {
    const sending = { showTo: () => ({ headers: {} }), redirects: 'follow' } as const;
    const answer = await requester.send(new URL(own.url), {
      ...sending,
      signal: AbortSignal.timeout(10_000),
    });
    await text(answer.body);
  }
  expect(connections.size).toBe(1);
  expect(warnings).toEqual([]);
});
