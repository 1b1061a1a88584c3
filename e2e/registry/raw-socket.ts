import { once } from 'node:events';
import net from 'node:net';

/** A connection on which a test says whatever it likes. */
export interface RawSocket {
  write(bytes: string): void;
  /** Says something and ends its side. */
  end(bytes: Uint8Array): void;
  /** Everything that was answered, once the other side has ended the connection. */
  readonly ended: Promise<string>;
  destroy(): void;
}

export function rawSocket(base: string): RawSocket {
  const { hostname, port } = new URL(base);
  const socket = net.connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece));
  // A refused client may be cut off in the middle of what it says.
  socket.on('error', () => socket.destroy());
  return {
    write: (bytes) => void socket.write(bytes),
    end: (bytes) => void socket.end(bytes),
    ended: once(socket, 'close').then(() => text),
    destroy: () => void socket.destroy(),
  };
}

/** Says something, ends its side, and returns everything that is answered. */
export function sayRaw(base: string, bytes: Uint8Array): Promise<string> {
  const socket = rawSocket(base);
  socket.end(bytes);
  return socket.ended;
}
