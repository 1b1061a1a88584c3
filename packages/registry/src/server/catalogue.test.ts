import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { silentLog } from '@skep/core/log/log.ts';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Catalogue, openCatalogue } from './catalogue.ts';
import { buildInfo } from '../config/build-info.ts';
import { DEFAULT_LIMITS } from '../shape/limits.ts';
import { ReadEngine } from '../engine/read-engine.ts';
import type { NamedSource } from '../store/rows.ts';
import { IN_MEMORY } from '../store/sqlite/private-file.ts';
import { openSqlite, type SqliteStore } from '../store/sqlite/sqlite.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { ingest } from '../sync/ingest.ts';

let server: Server;
let port: number;
let signedIn: (string | undefined)[];
let store: SqliteStore;
let catalogue: Catalogue | undefined;

beforeEach(async () => {
  signedIn = [];
  server = createServer((request, response) => {
    signedIn.push(request.headers.authorization);
    response.end(JSON.stringify([{ name: 'a/a', version: '1.0.0', description: 'x' }]));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
  store = await openSqlite({ path: IN_MEMORY, clock: systemClock, log: silentLog });
});
afterEach(async () => {
  await catalogue?.close();
  await store.close();
  server.close();
});

const configWith = (password: string) => {
  const source: NamedSource = {
    name: 'one',
    kind: 'file',
    config: JSON.stringify({ url: `http://ann:${password}@127.0.0.1:${port}/c.json` }),
    format: null,
    filter: null,
    interval: 3_600_000,
    claims: '',
  };
  return { sources: [source], registries: [], limits: DEFAULT_LIMITS };
};

const basic = (password: string): string => `Basic ${Buffer.from(`ann:${password}`).toString('base64')}`;

test('keeps a password of an address out of the store, and signs in with that of the file, also after a reload', async () => {
  catalogue = await openCatalogue({
    config: configWith('hunter2'),
    store,
    engine: new ReadEngine([]),
    ingest: (input) => Promise.resolve(ingest(input)),
    clock: systemClock,
    random: () => 0.5,
    randomId: () => 'one',
    log: silentLog,
    stop: new AbortController().signal,
    env: {},
    tempDir: tmpdir(),
    build: buildInfo({ nodeVersion: 'v24.0.0', platform: 'linux', arch: 'x64' }),
    operations: { synced: () => undefined, reconciled: () => undefined },
  });
  expect(signedIn).toEqual([basic('hunter2')]);
  const [stored] = await store.listSources();
  expect(stored?.config).toBe(JSON.stringify({ url: `http://127.0.0.1:${port}/c.json` }));
  await catalogue.reconcile(configWith('changed'));
  await catalogue.sync.syncNow('one');
  await vi.waitFor(() => expect(signedIn.at(-1)).toBe(basic('changed')), { interval: 5 });
});
