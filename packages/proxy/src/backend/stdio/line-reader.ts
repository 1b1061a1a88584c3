/** A line longer than this is dropped whole. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const FIRST_CAPACITY = 16 * 1024;
const NOTHING = Buffer.alloc(0);

export interface LineSink {
  line(text: string): void;
  /** A line over the limit went by. */
  tooLong(): void;
}

/**
 * Cuts a byte stream into UTF-8 lines: no trimming but of a trailing `\r`, blank lines left out. An unfinished line takes
 * memory by its length, in whatever pieces it comes.
 */
export class LineReader {
  readonly #sink: LineSink;
  readonly #limit: number;
  /** The unfinished line: `#size` bytes of it. */
  #partial: Buffer = NOTHING;
  #size = 0;
  #skipping = false;

  constructor(sink: LineSink, limitBytes = MAX_LINE_BYTES) {
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
    const whole = this.#size === 0 && rest.length <= this.#limit;
    if (!whole) this.#keep(rest);
    const line = whole ? rest : this.#partial.subarray(0, this.#size);
    const skipped = this.#skipping;
    this.#forget();
    this.#skipping = false;
    if (skipped) return;
    const end = line.at(-1) === RETURN ? line.length - 1 : line.length;
    if (end > 0) this.#sink.line(line.toString('utf8', 0, end));
  }

  #keep(part: Buffer): void {
    if (this.#skipping) return;
    const size = this.#size + part.length;
    if (size > this.#limit) {
      this.#skipping = true;
      this.#forget();
      this.#sink.tooLong();
      return;
    }
    if (size > this.#partial.length) this.#grow(size);
    part.copy(this.#partial, this.#size);
    this.#size = size;
  }

  #grow(size: number): void {
    const capacity = Math.min(Math.max(FIRST_CAPACITY, this.#partial.length * 2, size), this.#limit);
    const larger = Buffer.allocUnsafeSlow(capacity);
    this.#partial.copy(larger, 0, 0, this.#size);
    this.#partial = larger;
  }

  #forget(): void {
    this.#partial = NOTHING;
    this.#size = 0;
  }
}
