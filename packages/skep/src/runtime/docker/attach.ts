import { Transform, pipeline, type TransformCallback } from 'node:stream';
import { AttachedInput } from '../attached-input.ts';
import type { Attachment } from '../runtime.ts';
import type { Hijacked } from './client.ts';
import { Demultiplexer, type Frame } from './demultiplex.ts';

/**
 * Turns a hijacked connection into the stdio of a workload. stdout ends when the workload or the engine does; stderr
 * stays in the container's log. Ending stdin never half-closes the connection: Podman would take that as end of input
 * for every attached client.
 */
export function attachment({ socket, head }: Hijacked): Attachment {
  const stdout = new StdoutOnly();
  const stdin = new AttachedInput(socket);
  if (head.length > 0) socket.unshift(head);
  pipeline(socket, new Demultiplexer(), stdout, () => {
    // A cut connection is the end of this attachment, not a failure of its reader; `inspect` tells what happened.
    stdout.end();
    stdin.destroy();
    socket.destroy();
  });
  return { stdin, stdout, close: () => void socket.destroy() };
}

class StdoutOnly extends Transform {
  constructor() {
    super({ writableObjectMode: true });
  }

  override _transform(frame: Frame, _encoding: string, done: TransformCallback): void {
    done(null, frame.stream === 'stdout' ? frame.bytes : undefined);
  }

  /** The pipeline destroys its last stream when the socket breaks; readers shall see an end instead. */
  override _destroy(_error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.readableEnded) this.push(null);
    done(null);
  }
}
