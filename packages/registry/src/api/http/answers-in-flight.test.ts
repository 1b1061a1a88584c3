import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, Socket, type AddressInfo } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { AnswersInFlight } from './answers-in-flight.ts';
import { apiUnderTest } from '../api.fixture.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

const MEBI = 1024 * 1024;

/** An answer that nobody reads, on a connection of its own unless one is given. */
function answer(socket = new Socket()): ServerResponse {
  const listeners: (() => void)[] = [];
  const response = {
    req: { socket },
    closed: false,
    once: (_: string, listener: () => void) => listeners.push(listener),
    emit: () => listeners.forEach((listener) => listener()),
  };
  return response as unknown as ServerResponse;
}

test('cuts the connection that has waited longest when answers that nobody reads take too much memory', () => {
  const inFlight = new AnswersInFlight(3 * MEBI);
  const answers = Array.from({ length: 5 }, () => answer());
  for (const one of answers) inFlight.add(one, [Buffer.alloc(MEBI)]);
  expect(answers.map(({ req }) => req.socket.destroyed)).toEqual([true, true, false, false, false]);
  expect(inFlight.bytes).toBe(3 * MEBI);
});

test('counts a page once that many wait for, and nothing that is small or lies in the snapshot', () => {
  const inFlight = new AnswersInFlight(3 * MEBI);
  const [shared, block] = [Buffer.alloc(MEBI), Buffer.alloc(8 * MEBI)];
  const answers = Array.from({ length: 100 }, () => answer());
  for (const one of answers) inFlight.add(one, [shared, block.subarray(0, MEBI), Buffer.alloc(1000)]);
  expect(inFlight.bytes).toBe(MEBI);
  expect(answers.some(({ req }) => req.socket.destroyed)).toBe(false);
  for (const one of answers) one.emit('close');
  expect(inFlight.bytes).toBe(0);
});

test('forgets what a connection waited for when it ends, also answers that were in line behind another', async () => {
  const inFlight = new AnswersInFlight(MEBI);
  const waiting: Promise<unknown>[] = [];
  const taken = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    waiting.push(once(response, 'close'));
    inFlight.add(response, [Buffer.alloc(MEBI)]);
    if (waiting.length === 20) taken.resolve();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(20));
  await taken.promise;
  expect(inFlight.bytes).toBe(20 * MEBI);
  client.destroy();
  await Promise.all(waiting);
  expect(inFlight.bytes).toBe(0);
});

test('does not count what is sent to a connection that has ended', () => {
  const inFlight = new AnswersInFlight(MEBI);
  const socket = new Socket();
  socket.destroy();
  inFlight.add(answer(socket), [Buffer.alloc(MEBI)]);
  expect(inFlight.bytes).toBe(0);
});

const half = (source: number) =>
  Array.from({ length: 100 }, (_, at) => {
    const entry = storedServer(`io.acme/s${String(2 * at + source).padStart(4, '0')}`);
    const document = JSON.stringify({ name: entry.name, version: '1.0.0', description: 'x'.repeat(20_000) });
    return { ...entry, versions: entry.versions.map((one) => ({ ...one, document })) };
  });
const api = await apiUnderTest({
  // In turn from two sources, so that a page is a copy.
  snapshot: snapshotOf({ even: half(0), odd: half(1) }),
  routes: READ_ROUTES,
  listener: { mostUnread: MEBI },
});
afterAll(() => api.close());

test('a caller who asks for pages and reads none is cut off when others ask, and those get theirs', async () => {
  const base = await api.open.listen();
  const client = connect(Number(new URL(base).port), '127.0.0.1').on('error', () => undefined);
  const cut = new Promise((resolve) => client.on('close', resolve));
  const list = '/registry/all/v0.1/servers';
  for (const limit of [200, 199, 198, 197]) {
    client.write(`GET ${list}?limit=${limit} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  }
  await once(api.open.server, 'request');
  const other = await fetch(`${base}${list}?limit=150`);
  expect((await other.arrayBuffer()).byteLength).toBeGreaterThan(3_000_000);
  // Nobody has read until now, and only now the client hears of its end.
  client.resume();
  await cut;
});
