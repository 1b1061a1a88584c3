import { Transform, type TransformCallback } from 'node:stream';
import { isLoopback } from '../../call/loopback.ts';
import type { PublicAddress } from '../../call/public-address.ts';

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const NOTHING = Buffer.alloc(0);
const EVENT = Buffer.from('event');
const DATA = Buffer.from('data');
const ENDPOINT = Buffer.from('endpoint');
/** Of a line that may have to be looked at: `event: endpoint`, and the address of one. */
const MAX_NAME_LINE = 64;
const MAX_ADDRESS_LINE = 64 * 1024;

/**
 * Passes an event stream on as it comes, byte for byte and at once, but for the address in events named `endpoint`
 * (MCP 2024-11-05, HTTP with SSE). Lines have no bound: only the start of one is ever waited for.
 */
export class EndpointEvents extends Transform {
  readonly #rewrite: (address: string) => string;
  /** The beginning of a line that may be of interest. */
  #held: Buffer = NOTHING;
  /** The line that is passing by is of no interest. */
  #passing = false;
  #isEndpoint = false;
  /** A line feed would be the second half of a line end. */
  #afterReturn = false;

  constructor(rewrite: (address: string) => string) {
    super();
    this.#rewrite = rewrite;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
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
          done();
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
      this.#afterReturn = isWhole && chunk[end] === CR;
      at = end + 1;
    }
    passTo(chunk.length);
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#held.length > 0) this.push(this.#held);
    done();
  }

  /** True while the unfinished line may turn out to be a name or an address. */
  #mayMatter(line: Buffer): boolean {
    const limit = this.#isEndpoint ? MAX_ADDRESS_LINE : MAX_NAME_LINE;
    if (line.length > limit) return false;
    return beginsLike(line, EVENT) || (this.#isEndpoint && beginsLike(line, DATA));
  }

  /** Takes a whole line; gives back what stands in its place, where that is something else. */
  #lineOf(line: Buffer): Buffer | undefined {
    if (line.length === 0) this.#isEndpoint = false;
    const name = valueOf(line, EVENT);
    if (name !== undefined) this.#isEndpoint = name.equals(ENDPOINT);
    const address = this.#isEndpoint ? valueOf(line, DATA) : undefined;
    if (address === undefined) return undefined;
    const lead = line.subarray(0, line.length - address.length);
    return Buffer.concat([lead, Buffer.from(this.#rewrite(address.toString('latin1')), 'latin1')]);
  }
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

const ABSOLUTE = /^(?<origin>https?:\/\/[^/?#]*)(?<rest>.*)$/isu;

/**
 * The address that a server told for its messages, as a client of the proxy needs it; the query stays as it is, byte for
 * byte. `asked` is where the server's stream is. The address of another host is nobody's business but its client's.
 */
export function endpointFor(address: string, asked: URL, { prefix, forwardedOrigin }: PublicAddress): string {
  const own = pathOf(address, asked);
  if (own === undefined) return address;
  const isThere = own.startsWith(`${prefix}/`);
  return `${forwardedOrigin ?? ''}${prefix === '' || isThere ? '' : prefix}${own}`;
}

/** The path on the server, raw; undefined for the address of somebody else. */
function pathOf(address: string, asked: URL): string | undefined {
  const { groups } = ABSOLUTE.exec(address) ?? {};
  if (groups !== undefined) {
    const { origin = '', rest = '' } = groups;
    const there = URL.parse(origin);
    const isOwn =
      there !== null &&
      (there.origin === asked.origin || isLoopback(there.hostname) || there.hostname === '0.0.0.0');
    return isOwn ? rest.replace(/^(?!\/)/u, '/') : undefined;
  }
  if (address.startsWith('//') || /^[a-z][a-z0-9+.-]*:/iu.test(address)) return undefined;
  if (address.startsWith('/')) return address;
  return address.startsWith('?')
    ? `${asked.pathname}${address}`
    : `${asked.pathname.replace(/[^/]*$/u, '')}${address}`;
}
