import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { expect, test } from 'vitest';
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
