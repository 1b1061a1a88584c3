import { once } from 'node:events';
import type { Socket } from 'node:net';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { afterEach, describe, expect, test } from 'vitest';
import { Peers } from './peers.fixture.ts';

const peers = new Peers();
afterEach(() => peers.end());

/** The connection is closed by the other side. */
const closed = (socket: Socket) => once(socket.resume(), 'end');

describe('a connection that says too little for too long is closed', () => {
  test.each([
    ['nothing to the proxy', 'proxy', '', 30_000],
    ['half a request to the proxy', 'proxy', 'GET http://a.example/ HTTP/1.1\r\nHost', 30_000],
    ['nothing to TLS', 'tls', '', 30_000],
    ['half a hello to TLS', 'tls', '\x16\x03\x01', 15_000],
    ['nothing over HTTP', 'http', '', 30_000],
    ['nothing to the server', 'ingress', '', 30_000],
    ['half a question', 'dnsTcp', '\0', 10_000],
  ] as const)('%s', async (_what, service, said, milliseconds) => {
    const clock = manualClock();
    const ingress = { host: '127.0.0.1', port: 1, proxy: '127.0.0.1:2' };
    const gateway = await peers.gateway({ allowAll: true, ingress, options: { clock } });
    const socket = peers.connect(gateway[service]);
    socket.write(said);
    await expect.poll(() => clock.nextIn).toBe(milliseconds);
    const end = closed(socket);
    clock.pass(milliseconds);
    await end;
  });

  test('between two requests too, but never while one is under way', async () => {
    const clock = manualClock();
    const held = Promise.withResolvers<() => void>();
    const port = await peers.http((_req, res) => held.resolve(() => res.end('late')));
    const gateway = await peers.gateway({ allowAll: true, leadsTo: { 80: port }, options: { clock } });
    const socket = peers.connect(gateway.proxy);
    socket.write('GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n');
    const answer = await held.promise;
    clock.pass(86_400_000);
    const saying = once(socket, 'data');
    answer();
    const [said] = await saying;
    expect(String(said)).toContain('200 OK');
    const end = closed(socket);
    await expect.poll(() => clock.nextIn).toBe(70_000);
    clock.pass(70_000);
    await end;
  });
});

test('a tunnel in which nothing is said for a day stays open', async () => {
  const clock = manualClock();
  const port = await peers.tcp((socket) => socket.pipe(socket));
  const gateway = await peers.gateway({ allowAll: true, leadsTo: { 22: port }, options: { clock } });
  const { socket } = await peers.tunnel(gateway.proxy, 'a.example:22');
  clock.pass(86_400_000);
  socket.write('still here');
  expect(String((await once(socket, 'data'))[0])).toBe('still here');
});

test('connections beyond a bound are closed unheard, and the next one is heard when one ends', async () => {
  const gateway = await peers.gateway({ allowAll: true });
  const open = await Promise.all(
    Array.from({ length: 512 }, async () => {
      const socket = peers.connect(gateway.proxy);
      await once(socket, 'connect');
      return socket;
    }),
  );
  await closed(peers.connect(gateway.proxy));
  for (const socket of open) socket.destroy();
  await expect
    .poll(
      () =>
        peers.ask(gateway.proxy, '/').then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 8_000 },
    )
    .toBe(400);
});

test('names that are resolved at once are bounded, and one that takes too long is given up', async () => {
  const clock = manualClock();
  const asked: string[] = [];
  const resolve = (name: string) => {
    asked.push(name);
    return new Promise<never>(() => {});
  };
  const gateway = await peers.gateway({ allowAll: true, options: { clock, resolve } });
  const answers = Array.from({ length: 140 }, (_, index) =>
    peers.ask(gateway.proxy, `http://${index}.example/`),
  );
  // Most of them are never answered.
  const all = Promise.allSettled(answers);
  const first = await Promise.race(answers);
  expect(first).toMatchObject({ status: 502, body: expect.stringContaining('(too many names at once)') });
  expect(asked).toHaveLength(4);
  clock.pass(15_000);
  const late = await answers[Number.parseInt(asked[0] ?? '')];
  expect(late).toMatchObject({ status: 502, body: expect.stringContaining('(no answer in time)') });
  expect(asked).toHaveLength(8);
  await peers.end();
  await all;
});
