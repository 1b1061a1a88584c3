import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import * as fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { Peers } from './peers.fixture.ts';

const peers = new Peers();
afterEach(() => peers.end());

/** Beginnings that lead deeper than bytes alone. */
const BEGINNINGS = [
  '',
  'CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET http://a.example/ HTTP/1.1\r\nHost: a\r\n',
  'POST http://a.example/ HTTP/1.1\r\nHost: demo\r\nTransfer-Encoding: chunked\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: demo\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
  '\x16\x03\x01\x00\x10\x01\x00\x00\x0c\x03\x03',
  '\x00\x10\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00',
];

test('no bytes on any listener end the gateway, or reach a host that is not allowed', async () => {
  const port = await peers.tcp((socket) => void socket.pipe(socket));
  const gateway = await peers.gateway({
    hosts: ['a.example'],
    leadsTo: { 443: port, 80: port },
    ingress: { host: '127.0.0.1', port, proxy: '127.0.0.1:1' },
  });
  const listeners = [gateway.proxy, gateway.tls, gateway.http, gateway.ingress, gateway.dnsTcp];
  const socket = createSocket('udp4');
  const bytes = fc.array(
    fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.string().map((one) => Buffer.from(one)),
    ),
    {
      minLength: 1,
      maxLength: 4,
    },
  );
  const property = fc.asyncProperty(
    fc.constantFrom(...BEGINNINGS),
    bytes,
    fc.boolean(),
    async (begun, parts, reset) => {
      const ended = listeners.map(async (listener) => {
        const client = peers.connect(listener);
        const closed = once(client, 'close');
        client.resume().write(Buffer.from(begun, 'latin1'));
        for (const part of parts) client.write(part);
        if (reset) client.once('connect', () => client.resetAndDestroy());
        else client.end(() => client.destroy());
        await closed;
      });
      for (const part of parts)
        socket.send(Buffer.concat([Buffer.from(begun, 'latin1'), part]), gateway.dns, '127.0.0.1');
      await Promise.all(ended);
    },
  );
  try {
    await fc.assert(property, { numRuns: 100 });
  } finally {
    socket.close();
  }
  expect(new Set(gateway.resolved)).toEqual(new Set(['a.example']));
  for (const listener of [gateway.proxy, gateway.http, gateway.ingress])
    expect(
      await peers.say(listener, 'GET http://b.example/ HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n'),
    ).toMatch(/^HTTP\/1\.1 40[03] /);
});
