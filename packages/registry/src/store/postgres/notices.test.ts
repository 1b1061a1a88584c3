import { silentLog } from '@skep/core/log/log.ts';
import type { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { ChangeFeed } from '../change-feed.ts';
import { EndingClient } from './connect.ts';
import { PostgresNotices } from './notices.ts';
import { silentDatabase } from './silent-database.fixture.ts';

const STATEMENT = { name: 'write-batch', text: 'select 1' };

async function listening({ answers = true, isLost = false } = {}) {
  const { port, asked } = await silentDatabase({ answers, isLost });
  const clock = manualClock();
  const feed = new ChangeFeed({ clock, log: silentLog, checkEvery: 3_000, readRevision: async () => 1 });
  const connect = async (): Promise<Client> => {
    const client = new EndingClient({ host: '127.0.0.1', port, user: 'u', database: 'd', ssl: false });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const notices = new PostgresNotices({ connect, feed, clock, log: silentLog });
  onTestFinished(() => notices.close());
  const listened = notices.listen();
  await (answers ? listened : asked);
  return { clock, notices };
}

test('a statement on a connection that was cut without a word is given up, and keeps no other one waiting', async () => {
  const { clock, notices } = await listening();
  const answer = notices.query(STATEMENT);
  expect(answer).toBeDefined();
  expect(notices.query(STATEMENT)).toBeUndefined();
  clock.pass(25_000);
  await expect(answer).rejects.toThrow('Connection terminated');
  expect(notices.query(STATEMENT)).toBeUndefined();
});

test('a connection of which nothing was heard lately takes no statement, also where the clock was put back', async () => {
  for (const milliseconds of [30_000, -3_600_000]) {
    const { clock, notices } = await listening();
    clock.pass(milliseconds);
    expect(notices.query(STATEMENT)).toBeUndefined();
  }
});

test.each([true, false])(
  'closing does not wait for a server that is out of reach, whether it has said that it listens: %s',
  async (answers) => {
    const { notices } = await listening({ answers, isLost: true });
    await notices.close();
  },
);
