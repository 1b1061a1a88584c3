import { writeSync } from 'node:fs';
import { silentLog } from '@skep/core/log/log.ts';
import { openPostgres } from '@skep/registry/store/postgres/postgres.ts';
import { openSqlite } from '@skep/registry/store/sqlite/sqlite.ts';
import type { PublishRequest } from '@skep/registry/store/decisions.ts';
import type { Store } from '@skep/registry/store/store.ts';
import { systemClock } from '@skep/core/time/clock.ts';

/**
 * A process to be killed: publishes without end and prints the name of each publish that was acknowledged, after it was.
 * Arguments: `sqlite PATH` or `postgres PORT DATABASE`, then a prefix for the names.
 */
const [kind, ...rest] = process.argv.slice(2);
const prefix = rest.at(-1) ?? '';
const LANES = 8;

const store = await open();
await Promise.all(Array.from({ length: LANES }, (_, lane) => publishForEver(lane)));

function open(): Promise<Store> {
  if (kind === 'sqlite') return openSqlite({ path: rest[0] ?? '', clock: systemClock, log: silentLog });
  return openPostgres({
    settings: {
      host: '127.0.0.1',
      port: Number(rest[0]),
      database: rest[1] ?? '',
      user: 'postgres',
      password: 'unused',
      sslMode: 'disable',
    },
    passwordFile: { named: undefined, homeDirectory: '/nonexistent', platform: process.platform },
    applicationName: 'skep-registry-writer',
    clock: systemClock,
    log: silentLog,
  });
}

async function publishForEver(lane: number): Promise<void> {
  for (let turn = 0; ; turn++) {
    // Every second name gets a second version, so that entries of both kinds are cut off.
    const name = `${prefix}/${lane}-${turn - (turn % 2)}`;
    try {
      await store.publish(requestOf(name, String(turn % 2)), () => {});
      writeSync(1, `${name}@${turn % 2}\n`);
    } catch (error) {
      // The database is away; it comes back.
      writeSync(2, `${error instanceof Error ? error.message : String(error)}\n`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

function requestOf(name: string, version: string): PublishRequest {
  const document = JSON.stringify({ name, version });
  const content = { version, title: null, description: null, document, official: null };
  return { kind: 'server', namespace: '', name, claims: '', version: content };
}
