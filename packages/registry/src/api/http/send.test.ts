import type { RequestListener } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { apiUnderTest } from '../api.fixture.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

test('encodes so many answers at once and gives further ones as they are, so that none wait in memory', async () => {
  const names = Array.from({ length: 40 }, (_, at) => storedServer(`io.acme/s${at}`));
  const api = await apiUnderTest({
    snapshot: snapshotOf({ files: names }),
    routes: READ_ROUTES,
    listener: { compress: true },
  });
  // All arrive in one turn, or the first would be encoded before the last comes.
  const { server } = api.open;
  const arrived: Parameters<RequestListener>[] = [];
  const [handle] = server.listeners('request');
  server.removeAllListeners('request').on('request', (...one) => {
    if (arrived.push(one) === 18) for (const each of arrived) handle?.(...each);
  });
  const ask = (limit: number) =>
    api.get(`/registry/all/v0.1/servers?limit=${limit}`, { 'accept-encoding': 'gzip' });
  const answers = await Promise.all(Array.from({ length: 18 }, (_, at) => ask(40 - at)));
  const encoded = answers.filter(({ headers }) => headers['content-encoding'] === 'gzip');
  expect(encoded).toHaveLength(16);
  for (const one of answers) {
    const isEncoded = one.headers['content-encoding'] !== undefined;
    const text = isEncoded ? gunzipSync(one.rawPayload).toString() : one.body;
    expect([one.statusCode, JSON.parse(text).metadata.count]).toEqual([200, 40 - answers.indexOf(one)]);
  }
  await api.close();
});
