import { expect, test } from 'vitest';
import type { StorePlace } from '../store/open-store.ts';
import { commitBeside } from './listeners.ts';

const postgres = (host: string): StorePlace => ({
  kind: 'postgres',
  settings: { host, port: 5432, database: 'd', user: 'u', sslMode: 'disable' },
  passwordFile: { named: undefined, homeDirectory: '/', platform: 'linux' },
  applicationName: 'test',
});

test.each(['localhost', '127.0.0.1', '127.1.2.3', '::1', '/var/run/postgresql'])(
  'reads give way to commits of a database at %s, as soon as there is a store',
  (host) => {
    const opened: { store?: { committingSince: () => number } } = {};
    const since = commitBeside(postgres(host), () => opened.store);
    expect(since?.()).toBeUndefined();
    opened.store = { committingSince: () => 17 };
    expect(since?.()).toBe(17);
  },
);

test.each(['db', 'db.example', '10.0.0.7', '2001:db8::1', 'localhost.example'])(
  'reads wait for no commit of a database at %s',
  (host) => expect(commitBeside(postgres(host), () => undefined)).toBeUndefined(),
);

test('reads wait for no commit of a file', () => {
  expect(commitBeside({ kind: 'sqlite', path: 'registry.db' }, () => undefined)).toBeUndefined();
});
