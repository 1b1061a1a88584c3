import { Transform, type TransformCallback } from 'node:stream';

/** Frame kinds of the engine's raw stream (Engine API, "Stream format"). */
const KINDS: Readonly<Record<number, 'stdout' | 'stderr'>> = { 1: 'stdout', 2: 'stderr' };

export interface Frame {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Buffer;
}

/**
 * Takes the raw stream apart: 8 bytes of header (kind, three zeros, big-endian length), then the payload. Payload is
 * passed on as it comes, a frame is never collected whole. Emits `Frame` objects.
 */
export class Demultiplexer extends Transform {
  #header = Buffer.alloc(0);
  #stream: Frame['stream'] | undefined;
  #left = 0;

  constructor() {
    super({ readableObjectMode: true, readableHighWaterMark: 16 });
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    let rest = chunk;
    while (rest.length > 0) rest = this.#left > 0 ? this.#payload(rest) : this.#head(rest);
    done();
  }

  #payload(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#left);
    this.#left -= part.length;
    if (this.#stream) this.push({ stream: this.#stream, bytes: part } satisfies Frame);
    return bytes.subarray(part.length);
  }

  #head(bytes: Buffer): Buffer {
    const missing = 8 - this.#header.length;
    this.#header = Buffer.concat([this.#header, bytes.subarray(0, missing)]);
    if (this.#header.length === 8) {
      this.#stream = KINDS[this.#header[0] ?? 0];
      this.#left = this.#header.readUInt32BE(4);
      this.#header = Buffer.alloc(0);
    }
    return bytes.subarray(missing);
  }
}
