import { Readable, type Duplex } from 'node:stream';
import { AttachedInput } from '../attached-input.ts';
import type { Attachment } from '../runtime.ts';
import type { Hijacked } from './client.ts';
import { Demultiplexer } from './demultiplex.ts';

/**
 * Turns a hijacked connection into the stdio of a workload. stdout ends when the workload or the engine does; stderr
 * stays in the container's log. Ending stdin never half-closes the connection: Podman would take that as end of input
 * for every attached client.
 */
export function attachment({ socket, head }: Hijacked): Attachment {
  if (head.length > 0) socket.unshift(head);
  const stdout = new AttachedOutput(socket);
  const stdin = new AttachedInput(socket);
  socket.once('close', () => stdin.destroy());
  return { stdin, stdout, close: () => void socket.destroy() };
}

/** The stdout of the workload out of the connection, which waits while nobody reads. */
class AttachedOutput extends Readable {
  readonly #socket: Duplex;

  constructor(socket: Duplex) {
    super();
    this.#socket = socket;
    const demultiplexer = new Demultiplexer();
    socket.on('data', (chunk: Buffer) => {
      let wanted = true;
      demultiplexer.take(chunk, (stream, bytes) => {
        if (stream === 'stdout') wanted = this.push(bytes);
      });
      if (!wanted) socket.pause();
    });
    // A cut connection is the end of this attachment, not a failure of its reader; `inspect` tells what happened.
    socket.on('error', () => socket.destroy());
    socket.once('end', () => socket.destroy());
    socket.once('close', () => this.push(null));
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
