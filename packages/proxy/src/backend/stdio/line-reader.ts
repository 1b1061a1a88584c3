/** A line longer than this is dropped whole. */
export const LINE_LIMIT_BYTES = 64 * 1024 * 1024;

const NEWLINE = 0x0a;
const RETURN = 0x0d;

export interface LineSink {
  line(text: string): void;
  /** A line over the limit went by. */
  tooLong(): void;
}

/** Cuts a byte stream into UTF-8 lines: no trimming but of a trailing `\r`, blank lines left out. */
export class LineReader {
  readonly #sink: LineSink;
  readonly #limit: number;
  #partial: Buffer[] = [];
  #size = 0;
  #skipping = false;

  constructor(sink: LineSink, limitBytes = LINE_LIMIT_BYTES) {
    this.#sink = sink;
    this.#limit = limitBytes;
  }

  push(chunk: Buffer): void {
    let start = 0;
    let end = chunk.indexOf(NEWLINE);
    while (end !== -1) {
      this.#finish(chunk.subarray(start, end));
      start = end + 1;
      end = chunk.indexOf(NEWLINE, start);
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  #finish(rest: Buffer): void {
    this.#keep(rest);
    const line = this.#partial.length === 1 ? rest : Buffer.concat(this.#partial);
    const skipped = this.#skipping;
    this.#partial = [];
    this.#size = 0;
    this.#skipping = false;
    if (skipped) return;
    const end = line.at(-1) === RETURN ? line.length - 1 : line.length;
    if (end > 0) this.#sink.line(line.toString('utf8', 0, end));
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (!this.#skipping && this.#size > this.#limit) {
      this.#skipping = true;
      this.#sink.tooLong();
    }
    if (this.#skipping) this.#partial = [];
    else this.#partial.push(part);
  }
}
