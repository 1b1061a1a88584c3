/** Frame kinds of the engine's raw stream (Engine API, "Stream format"). */
const KINDS: Readonly<Record<number, StreamName>> = { 1: 'stdout', 2: 'stderr' };
const HEADER_BYTES = 8;

export type StreamName = 'stdout' | 'stderr';

export interface Frame {
  readonly stream: StreamName;
  readonly bytes: Buffer;
}

/**
 * Takes the raw stream apart: 8 bytes of header (kind, three zeros, big-endian length), then the payload. Payload is
 * passed on as it comes, a frame is never collected whole; frames of an unknown kind are left out.
 */
export class Demultiplexer {
  #header = Buffer.alloc(0);
  #stream: StreamName | undefined;
  #left = 0;

  /** Hands on what the chunk holds of each stream, in order; `bytes` are views into it. */
  take(chunk: Buffer, found: (stream: StreamName, bytes: Buffer) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left === 0) {
        at = this.#head(chunk, at);
        continue;
      }
      const end = Math.min(at + this.#left, chunk.length);
      this.#left -= end - at;
      if (this.#stream) found(this.#stream, chunk.subarray(at, end));
      at = end;
    }
  }

  /** Reads a header, which may come in pieces; the place behind what was read. */
  #head(chunk: Buffer, at: number): number {
    if (this.#header.length === 0 && chunk.length - at >= HEADER_BYTES) {
      this.#begin(chunk, at);
      return at + HEADER_BYTES;
    }
    const end = Math.min(at + HEADER_BYTES - this.#header.length, chunk.length);
    this.#header = Buffer.concat([this.#header, chunk.subarray(at, end)]);
    if (this.#header.length === HEADER_BYTES) {
      this.#begin(this.#header, 0);
      this.#header = Buffer.alloc(0);
    }
    return end;
  }

  #begin(header: Buffer, at: number): void {
    this.#stream = KINDS[header[at] ?? 0];
    this.#left = header.readUInt32BE(at + 4);
  }
}
