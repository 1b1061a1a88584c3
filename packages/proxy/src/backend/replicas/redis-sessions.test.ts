import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { describe, expect, test } from 'vitest';
import { openRedisSessions } from './redis-sessions.ts';

/** Takes connections, and says nothing. */
async function silentServer() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const open = () =>
    openRedisSessions(
      { address: `redis://127.0.0.1:${port}`, database: 0, keyPrefix: '' },
      { clock: systemClock, log: silentLog },
    );
  return { server, open };
}

test.each(['while it dials', 'while nobody has answered yet'])(
  'closed %s, it keeps no connection',
  async (when) => {
    const { server, open } = await silentServer();
    const connected = once(server, 'connection') as Promise<[Socket]>;
    const store = await open();
    if (when === 'while nobody has answered yet') await connected;
    store.close();
    store.close();
    const [socket] = await connected;
    socket.on('error', () => {}).resume();
    await once(socket, 'close');
    const left = await new Promise<number>((resolve, reject) =>
      server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
    expect(left).toBe(0);
    server.close();
  },
);

describe('a Redis that takes connections', () => {
  /** Answers the first `answers` pieces of what it gets with OK, on each connection, and then says nothing. */
  async function fallingSilent(answers: number) {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const sockets: Socket[] = [];
    server.on('connection', (socket) => {
      sockets.push(socket);
      let said = 0;
      socket.on('error', () => {}).on('data', () => void ((said += 1) <= answers && socket.write('+OK\r\n')));
    });
    const clock = manualClock();
    const lines: string[] = [];
    const tell = (fields: object, message: string): void => void lines.push(JSON.stringify(fields) + message);
    const store = await openRedisSessions(
      { address: `redis://127.0.0.1:${port}`, database: 1, keyPrefix: '' },
      { clock, log: { ...silentLog, warn: tell, info: tell } },
    );
    return {
      sockets,
      clock,
      lines,
      store,
      async [Symbol.asyncDispose]() {
        store.close();
        for (const socket of sockets) socket.destroy();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }

  const closed = (socket: Socket | undefined): boolean => socket?.destroyed === true;

  test('and says nothing is left for another connection, told in one line', async () => {
    await using it = await fallingSilent(0);
    for (let times = 1; times <= 3; times += 1) {
      await expect.poll(() => [it.sockets.length, it.clock.waiting]).toEqual([times, 1]);
      await expect(it.store.get('x')).rejects.toMatchObject({ code: 'proxy/session-store-away' });
      it.clock.pass(3_000);
      await expect.poll(() => closed(it.sockets[times - 1])).toBe(true);
    }
    expect(it.lines).toEqual([
      expect.stringContaining('"it takes connections and says nothing"}Redis does not answer'),
    ]);
  });

  test('and answers no question any more is left as well, after the second', async () => {
    await using it = await fallingSilent(1);
    // Its database is chosen by then.
    await expect.poll(() => [it.sockets.length, it.clock.waiting]).toEqual([1, 0]);
    for (let late = 1; late <= 2; late += 1) {
      expect(closed(it.sockets[0])).toBe(false);
      const asking = it.store.get('x');
      await expect.poll(() => it.clock.waiting).toBe(1);
      it.clock.pass(2_000);
      await expect(asking).rejects.toMatchObject({ code: 'proxy/session-store-away' });
    }
    await expect.poll(() => [closed(it.sockets[0]), it.sockets.length]).toEqual([true, 2]);
    await expect.poll(() => it.lines.length).toBe(2);
  });
});
