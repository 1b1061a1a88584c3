import { Duplex } from 'node:stream';
import type { WebSocketLink } from './web-socket.ts';

/** The protocol of `attach` and `portforward`: each message begins with the number of its channel. */
export const CHANNEL_PROTOCOL = 'v4.channel.k8s.io';

const MAX_PIECE = 32 * 1024;

export interface Channels {
  /** What is written goes out there. */
  readonly to: number;
  /** What comes in there is read. */
  readonly from: number;
  /** Bytes at the beginning of what comes in that are no content. */
  readonly skip?: number;
}

/** Two channels of a link as one stream. It ends when the link does, whatever the reason; destroying it closes the link. */
export class ChannelStream extends Duplex {
  readonly #link: WebSocketLink;
  readonly #to: number;

  constructor(link: WebSocketLink, { to, from, skip = 0 }: Channels) {
    super({ allowHalfOpen: false });
    this.#link = link;
    this.#to = to;
    let skipped = 0;
    link.onClose(() => {
      this.push(null);
      // What is written after that reaches nobody.
      this.once('end', () => this.destroy());
    });
    link.onMessage((message) => {
      if (message[0] !== from) return;
      const start = Math.min(1 + skip - skipped, message.length);
      skipped += start - 1;
      const content = message.subarray(start);
      if (content.length > 0 && !this.push(content)) link.pause();
    });
  }

  override _read(): void {
    this.#link.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const rest = chunk.subarray(MAX_PIECE);
    const piece = Buffer.concat([Buffer.of(this.#to), chunk.subarray(0, MAX_PIECE)]);
    this.#link.send(piece, (error) => {
      if (error || rest.length === 0) done(error);
      else this._write(rest, 'buffer' as BufferEncoding, done);
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#link.close();
    done(error);
  }
}
