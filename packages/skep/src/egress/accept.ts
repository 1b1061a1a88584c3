import type { Server, Socket } from 'node:net';

/** Of one service at once; further ones are closed unheard. */
const MAX_CONNECTIONS = 512;
const KEEP_ALIVE_MS = 60_000;

/**
 * Takes connections of a listener that somebody else opened, in bounds. One that breaks is closed, one whose peer is gone
 * is noticed (TCP keep-alive), and one that is closed in one direction stays open in the other (RFC 9293 §3.6).
 */
export function acceptFrom(listener: Server, take: (socket: Socket) => void, most = MAX_CONNECTIONS): void {
  listener.maxConnections = most;
  // Of accepting one connection, for want of descriptors perhaps: the next one may do.
  listener.on('error', () => {});
  listener.on('connection', (socket) => {
    socket.allowHalfOpen = true;
    socket.on('error', () => void socket.destroy());
    take(socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS));
  });
}
