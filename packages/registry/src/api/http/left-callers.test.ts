import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { apiUnderTest } from '../api.fixture.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

/** As many as may be under way at once. */
const WALKS = 64;

// Searching these takes a few hundred turns.
const entries = Array.from({ length: 4000 }, (_, at) => {
  const entry = storedServer(`io.acme/s${at}`);
  return { ...entry, versions: entry.versions.map((one) => ({ ...one, description: 'y'.repeat(4096) })) };
});
const api = await apiUnderTest({ snapshot: snapshotOf({ files: entries }), routes: READ_ROUTES });
const base = await api.open.listen();
afterAll(() => api.close());

const target = (word: string): string => `/registry/all/v0.1/servers?search=${word.padEnd(200, 'z')}`;

/** Counts events of the server; resolves when there were as many as asked for. */
function counted(most: number, on: (count: () => void) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let seen = 0;
  on(() => {
    seen += 1;
    if (seen === most) resolve();
  });
  return promise;
}

async function ask(word: string): Promise<Socket> {
  const client = connect(Number(new URL(base).port), '127.0.0.1');
  await once(client, 'connect');
  client.write(`GET ${target(word)} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return client;
}

test('stops the searches of callers who have left, so that they keep nobody else out', async () => {
  const { server } = api.open;
  const asked = counted(WALKS, (count) => server.on('request', count));
  const left = counted(WALKS, (count) =>
    server.on('connection', (socket: Socket) => socket.on('close', count)),
  );
  const clients = await Promise.all(Array.from({ length: WALKS }, (_, at) => ask(`a${at}`)));
  await asked;
  expect((await fetch(`${base}${target('full')}`)).status).toBe(503);
  for (const client of clients) client.destroy();
  await left;
  const answer = await fetch(`${base}${target('b')}`);
  expect([answer.status, await answer.json()]).toEqual([200, { servers: [], metadata: { count: 0 } }]);
});
