import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { silentLog } from '@skep/core/log/log.ts';
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { ChangeFeed } from '../change-feed.ts';
import { PostgresNotices } from './notices.ts';

const STATEMENT = { name: 'write-batch', text: 'select 1' };

/** AuthenticationOk, CommandComplete and ReadyForQuery (PostgreSQL manual, "Message Formats"). */
const LET_IN = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
const DONE = Buffer.from('C\0\0\0\x0bLISTEN\0');
const READY = Buffer.from('Z\0\0\0\x05I');
/** What a simple query begins with; a prepared one begins otherwise. */
const QUERY = 'Q'.charCodeAt(0);

/** A database that lets everybody listen, and answers nothing else, as behind a connection that was cut without a word. */
async function silentDatabase(): Promise<number> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('data', () => {
      socket.write(Buffer.concat([LET_IN, READY]));
      socket.on('data', ([type]) => void (type === QUERY && socket.write(Buffer.concat([DONE, READY]))));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function listening() {
  const port = await silentDatabase();
  const clock = manualClock();
  const feed = new ChangeFeed({ clock, log: silentLog, checkEvery: 3_000, readRevision: async () => 1 });
  const connect = async (): Promise<Client> => {
    const client = new Client({ host: '127.0.0.1', port, user: 'u', database: 'd', ssl: false });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const notices = new PostgresNotices({ connect, feed, clock, log: silentLog });
  onTestFinished(() => notices.close());
  await notices.listen();
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
