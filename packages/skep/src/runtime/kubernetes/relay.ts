import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errnoOf } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { PortBinding } from '../runtime.ts';

/** Ports of this machine behind which is a pod, as long as it is open. Keeps no process alive. */
export interface Relay {
  readonly close: () => void;
}

/**
 * Listens where the bindings say and hands each connection on by `connect`. Fails with `runtime/start-failed` where a port
 * is taken.
 */
export async function openRelay(
  bindings: readonly PortBinding[],
  connect: (port: number) => Promise<Duplex>,
): Promise<Relay> {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const close = (): void => {
    for (const server of servers) server.close();
    for (const socket of sockets) socket.destroy();
  };
  try {
    for (const { hostIp, hostPort, containerPort } of bindings) {
      const server = createServer((socket) => {
        sockets.add(socket.unref());
        socket.on('error', () => socket.destroy()).once('close', () => sockets.delete(socket));
        join(socket, () => connect(containerPort));
      });
      servers.push(server.unref());
      server.listen(hostPort, hostIp);
      await once(server, 'listening');
    }
  } catch (cause) {
    close();
    const taken = bindings.map(({ hostIp, hostPort }) => `${hostIp}:${hostPort}`).join(', ');
    throw new SkepError('runtime/start-failed', {
      message: `nothing can listen on ${taken}: ${errnoOf(cause) ?? 'unexpected failure'}`,
      hint: 'end what listens there, or choose another port',
      cause,
    });
  }
  return { close };
}

/** A pod that cannot be reached is a connection that ends. */
function join(socket: Socket, connect: () => Promise<Duplex>): void {
  socket.pause();
  connect().then(
    (stream) => {
      if (socket.destroyed) {
        stream.destroy();
        return;
      }
      stream.on('error', () => stream.destroy()).once('close', () => socket.destroy());
      socket.once('close', () => stream.destroy());
      stream.pipe(socket).pipe(stream);
    },
    () => void socket.destroy(),
  );
}
