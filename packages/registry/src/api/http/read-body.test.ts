import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { apiUnderTest } from '../api.fixture.ts';
import { BodiesInFlight } from './read-body.ts';
import type { Route } from '../route/route.ts';
import { snapshotOf } from '../snapshot.fixture.ts';

function begun(inFlight: BodiesInFlight) {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  inFlight.watch(request, response);
  return { request, response, send: (bytes: number) => request.emit('data', Buffer.alloc(bytes)) };
}

test('cuts the connections whose bodies began first when unfinished bodies take too much memory', () => {
  const inFlight = new BodiesInFlight(300);
  const bodies = Array.from({ length: 5 }, () => begun(inFlight));
  for (const body of bodies) body.send(100);
  expect(bodies.map(({ request }) => request.socket.destroyed)).toEqual([true, true, false, false, false]);
  expect(inFlight.bytes).toBe(300);
});

test('counts no body that is complete, was answered or whose sender has gone, and never cuts the only one', () => {
  const inFlight = new BodiesInFlight(300);
  for (const event of ['end', 'close', 'finish'] as const) {
    const body = begun(inFlight);
    body.send(1000);
    expect([inFlight.bytes, body.request.socket.destroyed]).toEqual([1000, false]);
    if (event === 'finish') body.response.emit(event);
    else body.request.emit(event);
    body.send(1000);
    expect(inFlight.bytes).toBe(0);
  }
});

const route: Route = {
  method: 'POST',
  paths: ['/echo'],
  listener: 'public',
  access: 'public',
  name: 'echo',
  summary: 'Echo',
  path: {},
  query: {},
  body: { description: 'Anything', schema: 'Error', limit: 'maxBodySize', maxBytes: 1000 },
  replies: {},
  handle: (_context, { body }) => ({ status: 200, body: () => String(body.length) }),
};
const api = await apiUnderTest({
  snapshot: snapshotOf({ files: [] }),
  routes: [route],
  listener: { mostUnfinished: 1000 },
});
afterAll(() => api.close());

test('whoever begins a body and does not end it is cut off when others send theirs, which are taken', async () => {
  const base = await api.open.listen();
  const client = connect(Number(new URL(base).port), '127.0.0.1').on('error', () => undefined);
  const cut = new Promise((resolve) => client.on('close', resolve));
  const head =
    'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n';
  client.write(`${head}${'x'.repeat(800)}`);
  await once(api.open.server, 'request');
  const headers = { 'content-type': 'application/json' };
  const other = await fetch(`${base}/echo`, { method: 'POST', headers, body: 'y'.repeat(700) });
  expect([other.status, await other.text()]).toEqual([200, '700']);
  await cut;
});
