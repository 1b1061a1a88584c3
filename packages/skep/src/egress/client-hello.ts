/** What the first bytes of a connection are. */
export type FirstBytes =
  /** Too few to tell. */
  | { readonly kind: 'more' }
  /** Another protocol than TLS. */
  | { readonly kind: 'other' }
  /** A ClientHello, with the name that it asks for (SNI, RFC 6066 §3) if it says one. */
  | { readonly kind: 'hello'; readonly name?: string }
  /** It begins like TLS and is none that can be read. */
  | { readonly kind: 'broken' };

const HANDSHAKE_RECORD = 0x16;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
/** Of one record (RFC 8446 §5.1), and of a ClientHello: browsers send two kilobytes. */
const MAX_RECORD_BYTES = 2 ** 14;
export const MAX_HELLO_BYTES = 2 ** 15;

const MORE: FirstBytes = { kind: 'more' };
const BROKEN: FirstBytes = { kind: 'broken' };

/** Reads the ClientHello (RFC 8446 §4.1.2) at the beginning of `bytes`, however it is cut into records. */
export function readFirstBytes(bytes: Buffer): FirstBytes {
  if (bytes.length === 0) return MORE;
  if (bytes[0] !== HANDSHAKE_RECORD) return { kind: 'other' };
  const handshake = handshakeOf(bytes);
  if (handshake === undefined) return BROKEN;
  if (handshake.length > 0 && handshake[0] !== CLIENT_HELLO) return BROKEN;
  const length = handshake.length < 4 ? MAX_HELLO_BYTES : handshake.readUIntBE(1, 3);
  if (handshake.length >= 4 && length > MAX_HELLO_BYTES) return BROKEN;
  if (handshake.length < 4 + length) return bytes.length > 2 * MAX_HELLO_BYTES ? BROKEN : MORE;
  try {
    return helloOf(new Cursor(handshake.subarray(4, 4 + length)));
  } catch {
    return BROKEN;
  }
}

/** The content of the handshake records so far; undefined where other bytes stand between them. */
function handshakeOf(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    if (bytes[at] !== HANDSHAKE_RECORD || (bytes[at + 1] ?? 3) !== 3)
      return parts.length > 0 ? whole(parts) : undefined;
    if (at + 5 > bytes.length) break;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > MAX_RECORD_BYTES) return undefined;
    parts.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return Buffer.concat(parts);
}

/** What follows the ClientHello is not looked at, so a message that is whole may be followed by anything. */
function whole(parts: readonly Buffer[]): Buffer | undefined {
  const all = Buffer.concat(parts);
  return all.length >= 4 && all.length >= 4 + all.readUIntBE(1, 3) ? all : undefined;
}

function helloOf(hello: Cursor): FirstBytes {
  hello.take(2 + 32);
  hello.take(hello.number(1));
  hello.take(hello.number(2));
  hello.take(hello.number(1));
  // Versions before TLS 1.2 know no extensions.
  if (hello.isAtEnd) return { kind: 'hello' };
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
  return name === undefined ? { kind: 'hello' } : { kind: 'hello', name };
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
