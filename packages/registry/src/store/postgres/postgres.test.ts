import { silentLog } from '@skep/core/log/log.ts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openPool } from './postgres.ts';
import { silentDatabase } from './silent-database.fixture.ts';

/** Time passes when a test says so; what the system does goes on. */
async function opened() {
  const { port, asked } = await silentDatabase({ answers: false, isLost: true });
  const pool = await openPool({
    settings: { host: '127.0.0.1', port, user: 'u', password: 'p', database: 'd', sslMode: 'disable' },
    passwordFile: { named: undefined, homeDirectory: '/', platform: 'linux' },
    applicationName: 'test',
    log: silentLog,
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  return { pool, asked };
}

test('a statement on a connection that was cut without a word is given up, and the pool has room for another one', async () => {
  const { pool, asked } = await opened();
  const answer = expect(pool.query('select 1')).rejects.toThrow('Query read timeout');
  await asked;
  vi.advanceTimersByTime(60_000);
  expect(pool.totalCount).toBe(1);
  vi.advanceTimersByTime(10_000);
  await answer;
  expect(pool.totalCount).toBe(0);
  await pool.end();
});

test('a connection ends soon whose server does not answer any more', async () => {
  const { pool } = await opened();
  const client = await pool.connect();
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  client.release(true);
  vi.advanceTimersByTime(1_000);
  await ended;
});
