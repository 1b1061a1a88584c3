import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** AuthenticationOk, CommandComplete and ReadyForQuery (PostgreSQL manual, "Message Formats"). */
const LET_IN = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
const DONE = Buffer.from('C\0\0\0\x0bLISTEN\0');
const READY = Buffer.from('Z\0\0\0\x05I');
/** What a simple query begins with; a prepared one begins otherwise. */
const QUERY = 'Q'.charCodeAt(0);

/**
 * A database that lets everybody in, and listen where it `answers`. Nothing else is answered, and no goodbye where it
 * `isLost`, as behind a connection that was cut without a word. `asked` resolves with the first statement.
 */
export async function silentDatabase({ answers = true, isLost = false } = {}) {
  const open = new Set<Socket>();
  const asked = Promise.withResolvers<void>();
  const server = createServer({ allowHalfOpen: isLost }, (socket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('data', () => {
      socket.write(Buffer.concat([LET_IN, READY]));
      socket.on('data', ([type]) => {
        asked.resolve();
        if (type === QUERY && answers) socket.write(Buffer.concat([DONE, READY]));
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { port, asked: asked.promise };
}
