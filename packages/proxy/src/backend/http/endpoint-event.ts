import { Transform, type TransformCallback } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const NOTHING = Buffer.alloc(0);
const EVENT = Buffer.from('event');
const DATA = Buffer.from('data');
const ENDPOINT = Buffer.from('endpoint');
/** Readers drop it from the beginning of a stream. */
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** Of a line that may have to be looked at: `event: endpoint`, and the address of one. */
const MAX_NAME_LINE = 64;
const MAX_ADDRESS_LINE = 8 * 1024;

/**
 * Passes an event stream on as it comes, byte for byte and at once, but for the address in events named `endpoint`
 * (MCP 2024-11-05, HTTP with SSE). Lines have no bound: only the start of one is ever waited for. Fails with
 * `proxy/bad-gateway` on an address that a client would read and this does not: one that stands before the name of its
 * event, in several lines, or in one that is too long.
 */
export class EndpointEvents extends Transform {
  readonly #rewrite: (address: string) => string;
  /** The beginning of a line that may be of interest. */
  #held: Buffer = NOTHING;
  /** The line that is passing by is of no interest. */
  #passing = false;
  #isEndpoint = false;
  /** The event has data already. */
  #hasData = false;
  /** No line of the stream has ended yet. */
  #isFirst = true;
  /** A line feed would be the second half of a line end. */
  #afterReturn = false;

  constructor(rewrite: (address: string) => string) {
    super();
    this.#rewrite = rewrite;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.#pass(chunk);
      done();
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #pass(chunk: Buffer): void {
    let at = 0;
    let passed = 0;
    const passTo = (end: number): void => {
      if (end > passed) this.push(chunk.subarray(passed, end));
      passed = end;
    };
    const ends = lineEnds(chunk);
    while (at < chunk.length) {
      if (this.#afterReturn && chunk[at] === LF) {
        this.#afterReturn = false;
        at += 1;
        continue;
      }
      this.#afterReturn = false;
      const end = ends(at);
      const isWhole = end < chunk.length;
      if (!this.#passing) {
        const line = Buffer.concat([this.#held, chunk.subarray(at, end)]);
        const changed = isWhole ? this.#lineOf(line) : undefined;
        if (!isWhole && this.#mayMatter(line)) {
          passTo(at);
          this.#held = line;
          return;
        }
        if (changed !== undefined || this.#held.length > 0) {
          passTo(at);
          this.push(changed ?? line);
          passed = end;
        }
        this.#held = NOTHING;
      }
      this.#passing = !isWhole;
      if (isWhole) this.#isFirst = false;
      this.#afterReturn = isWhole && chunk[end] === CR;
      at = end + 1;
    }
    passTo(chunk.length);
  }

  override _flush(done: TransformCallback): void {
    if (this.#held.length > 0) this.push(this.#held);
    done();
  }

  /** True while the unfinished line may turn out to be a name or an address. */
  #mayMatter(line: Buffer): boolean {
    if (this.#isFirst && isStartOf(line, BYTE_ORDER_MARK)) return true;
    const text = this.#withoutMark(line);
    if (!beginsLike(text, DATA)) return text.length <= MAX_NAME_LINE && beginsLike(text, EVENT);
    if (text.length <= DATA.length) return true;
    if (!this.#isEndpoint) {
      this.#hasData = true;
      return false;
    }
    if (line.length > MAX_ADDRESS_LINE) throw unreadable('too long');
    return true;
  }

  #withoutMark(line: Buffer): Buffer {
    const isMarked = this.#isFirst && isStartOf(BYTE_ORDER_MARK, line);
    return isMarked ? line.subarray(BYTE_ORDER_MARK.length) : line;
  }

  /** Takes a whole line; gives back what stands in its place, where that is something else. */
  #lineOf(line: Buffer): Buffer | undefined {
    const text = this.#withoutMark(line);
    if (text.length === 0) {
      this.#isEndpoint = false;
      this.#hasData = false;
    }
    const name = valueOf(text, EVENT);
    if (name !== undefined) this.#isEndpoint = name.equals(ENDPOINT);
    const isData = text.equals(DATA) || valueOf(text, DATA) !== undefined;
    if (this.#isEndpoint && this.#hasData && (isData || name !== undefined))
      throw unreadable(isData ? 'in several lines' : 'before the name of its event');
    if (isData) this.#hasData = true;
    const address = this.#isEndpoint ? valueOf(text, DATA) : undefined;
    if (address === undefined) return undefined;
    if (line.length > MAX_ADDRESS_LINE) throw unreadable('too long');
    const lead = line.subarray(0, line.length - address.length);
    return Buffer.concat([lead, Buffer.from(this.#rewrite(address.toString('latin1')), 'latin1')]);
  }
}

const isStartOf = (start: Buffer, whole: Buffer): boolean =>
  start.length <= whole.length && whole.subarray(0, start.length).equals(start);

function unreadable(how: string): SkepError {
  return new SkepError('proxy/bad-gateway', { message: `the server told its address for messages ${how}` });
}

/** Where the line that holds a place ends: at a return or a line feed, else at the end of what there is. */
function lineEnds(chunk: Buffer): (from: number) => number {
  const next = new Map<number, number>();
  const find = (byte: number, from: number): number => {
    const known = next.get(byte) ?? -1;
    if (known >= from) return known;
    const found = chunk.indexOf(byte, from);
    const at = found === -1 ? chunk.length : found;
    next.set(byte, at);
    return at;
  };
  return (from) => Math.min(find(LF, from), find(CR, from));
}

/** True when `line` begins as `field:` does, as far as both go. */
function beginsLike(line: Buffer, field: Buffer): boolean {
  const length = Math.min(line.length, field.length);
  if (!line.subarray(0, length).equals(field.subarray(0, length))) return false;
  return line.length <= field.length || line[field.length] === COLON;
}

function valueOf(line: Buffer, field: Buffer): Buffer | undefined {
  if (line.length <= field.length || !beginsLike(line, field)) return undefined;
  const from = field.length + 1;
  return line.subarray(line[from] === SPACE ? from + 1 : from);
}
