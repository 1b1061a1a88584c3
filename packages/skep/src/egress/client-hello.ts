/** What the first bytes of a connection are. */
export type FirstBytes =
  /** Too few to tell. */
  | { readonly kind: 'more' }
  /** Another protocol than TLS. */
  | { readonly kind: 'other' }
  /** A ClientHello of so many bytes with its records, and the name that it asks for (SNI, RFC 6066 §3) if it says one. */
  | { readonly kind: 'hello'; readonly length: number; readonly name?: string }
  /** It begins like TLS and is none that can be read. */
  | { readonly kind: 'broken' };

const HANDSHAKE_RECORD = 0x16;
/** Of changed ciphers, alerts and data (RFC 8446 §5.1). */
const OTHER_RECORDS: readonly unknown[] = [0x14, 0x15, 0x17];
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
/** Of one record (RFC 8446 §5.1), and of a ClientHello: browsers send two kilobytes. */
const MAX_RECORD_BYTES = 2 ** 14;
const MAX_HELLO_BYTES = 2 ** 15;
/** Of records before a second ClientHello: what a server that says nothing of it takes early is one record. */
const MAX_BEFORE_BYTES = 2 ** 16;
/** Type and length of a message. */
const HEAD_BYTES = 4;

const MORE: FirstBytes = { kind: 'more' };
const OTHER: FirstBytes = { kind: 'other' };
const BROKEN: FirstBytes = { kind: 'broken' };

/**
 * Reads the ClientHello (RFC 8446 §4.1.2) at the beginning of `bytes`, however it is cut into records. Other records of TLS
 * before it are `broken`: some servers pass over an alert there.
 */
export function readFirstBytes(bytes: Buffer): FirstBytes {
  if (bytes.length === 0) return MORE;
  if (OTHER_RECORDS.includes(bytes[0])) return bytes.length === 1 ? MORE : bytes[1] === 3 ? BROKEN : OTHER;
  if (bytes[0] !== HANDSHAKE_RECORD) return OTHER;
  const parts: Buffer[] = [];
  let head = Buffer.alloc(0);
  let size = 0;
  for (let at = 0; at < bytes.length;) {
    if (bytes[at] !== HANDSHAKE_RECORD || (bytes[at + 1] ?? 3) !== 3) return BROKEN;
    if (at + 5 > bytes.length) break;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > MAX_RECORD_BYTES) return BROKEN;
    const part = bytes.subarray(at + 5, at + 5 + length);
    parts.push(part);
    size += part.length;
    at += 5 + length;
    if (head.length < HEAD_BYTES) head = Buffer.concat([head, part]).subarray(0, HEAD_BYTES);
    if (head.length > 0 && head[0] !== CLIENT_HELLO) return BROKEN;
    const whole = head.length < HEAD_BYTES ? Infinity : HEAD_BYTES + head.readUIntBE(1, 3);
    if (whole !== Infinity && whole > HEAD_BYTES + MAX_HELLO_BYTES) return BROKEN;
    // Its end is a record's (RFC 8446 §5.1), so nothing of another message is taken along.
    if (size >= whole)
      return size > whole || at > bytes.length ? BROKEN : readHello(Buffer.concat(parts), at);
  }
  return bytes.length > 2 * MAX_HELLO_BYTES ? BROKEN : MORE;
}

/**
 * Reads the ClientHello that a server asked for once more, behind other records: one of changed ciphers, and data that
 * was sent early and in vain (RFC 8446 §4.1.4, §4.2.10).
 */
export function readNextHello(bytes: Buffer): FirstBytes {
  let at = 0;
  while (OTHER_RECORDS.includes(bytes[at])) {
    if (at + 5 > bytes.length) return MORE;
    at += 5 + bytes.readUInt16BE(at + 3);
  }
  if (at > MAX_BEFORE_BYTES) return BROKEN;
  if (at >= bytes.length) return bytes.length > MAX_BEFORE_BYTES ? BROKEN : MORE;
  const next = readFirstBytes(bytes.subarray(at));
  return next.kind === 'other' ? BROKEN : next;
}

function readHello(handshake: Buffer, length: number): FirstBytes {
  try {
    return helloOf(new Cursor(handshake.subarray(HEAD_BYTES)), length);
  } catch {
    return BROKEN;
  }
}

function helloOf(hello: Cursor, length: number): FirstBytes {
  hello.take(2 + 32);
  hello.take(hello.number(1));
  hello.take(hello.number(2));
  hello.take(hello.number(1));
  // Versions before TLS 1.2 know no extensions.
  if (hello.isAtEnd) return { kind: 'hello', length };
  const extensions = new Cursor(hello.take(hello.number(2)));
  const names: string[] = [];
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const content = extensions.take(extensions.number(2));
    if (type === SERVER_NAME) names.push(...serverNames(new Cursor(content)));
  }
  // Of two, nobody can say which one the server goes by.
  if (names.length > 1 || !hello.isAtEnd) return BROKEN;
  const [name] = names;
  return name === undefined ? { kind: 'hello', length } : { kind: 'hello', length, name };
}

function serverNames(extension: Cursor): readonly string[] {
  const list = new Cursor(extension.take(extension.number(2)));
  const names: string[] = [];
  while (!list.isAtEnd) {
    const type = list.number(1);
    const name = list.take(list.number(2));
    if (type !== HOST_NAME) continue;
    // What is no plain text would be judged in another spelling than the server sees.
    if (name.some((byte) => byte <= 0x20 || byte >= 0x7f)) throw new RangeError();
    names.push(name.toString('latin1'));
  }
  return names;
}

/** Fails with a RangeError beyond the end. */
class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  number(size: 1 | 2): number {
    return this.take(size).readUIntBE(0, size);
  }

  take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new RangeError();
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
