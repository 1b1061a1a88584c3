import { SkepError } from '@skep/core/errors/skep-error.ts';

/**
 * Values as the D-Bus specification marshals them ("Type System", "Marshaling"), as far as the Secret Service needs
 * them: bytes, booleans, numbers of 32 bits, texts, paths, signatures, arrays, structures, entries and variants.
 */
export type Value = boolean | number | string | Uint8Array | readonly Value[] | Variant;

export interface Variant {
  readonly signature: string;
  readonly value: Value;
}

/** What somebody sends on a bus, or answers. */
export interface Message {
  readonly type: number;
  readonly serial: number;
  readonly fields: ReadonlyMap<number, Value>;
  readonly body: readonly Value[];
}

export const METHOD_CALL = 1;
export const METHOD_RETURN = 2;
export const ERROR = 3;
/** Header fields. */
export const PATH = 1;
export const INTERFACE = 2;
export const MEMBER = 3;
export const ERROR_NAME = 4;
export const REPLY_SERIAL = 5;
export const DESTINATION = 6;
const SIGNATURE = 8;

const FIELD_TYPES: Readonly<Record<number, string>> = {
  1: 'o',
  2: 's',
  3: 's',
  4: 's',
  5: 'u',
  6: 's',
  8: 'g',
};
const HEADER = 'yyyyuua(yv)';
const MAX_DEPTH = 16;
/** Bytes; more than any answer that is of use. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

const ALIGNMENTS: Readonly<Record<string, number>> = {
  y: 1,
  g: 1,
  v: 1,
  b: 4,
  i: 4,
  u: 4,
  s: 4,
  o: 4,
  a: 4,
  '(': 8,
  '{': 8,
};

const broken = (why: string): SkepError =>
  new SkepError('secrets/keyring', {
    message: `the keyring's bus says something that cannot be read: ${why}`,
  });

/** A text, or the empty one where the value is none. */
export const textOf = (value: Value | undefined): string => (typeof value === 'string' ? value : '');

/** The complete types of a signature. */
export function typesOf(signature: string): readonly string[] {
  const types: string[] = [];
  for (let at = 0; at < signature.length;) {
    const end = endOfType(signature, at, 0);
    types.push(signature.slice(at, end));
    at = end;
  }
  return types;
}

function endOfType(signature: string, at: number, depth: number): number {
  const kind = signature[at] ?? '';
  if (!Object.hasOwn(ALIGNMENTS, kind) || depth > MAX_DEPTH) throw broken('a type that is not known');
  if (kind === 'a') return endOfType(signature, at + 1, depth + 1);
  if (kind !== '(' && kind !== '{') return at + 1;
  const close = kind === '(' ? ')' : '}';
  let end = at + 1;
  // A list of them would never end.
  if (signature[end] === close) throw broken('a structure of nothing');
  while (signature[end] !== close) end = endOfType(signature, end, depth + 1);
  return end + 1;
}

/** The bytes of values of these types, little-endian. */
export function marshal(signature: string, values: readonly Value[]): Buffer {
  const writer = new Writer();
  for (const [index, type] of typesOf(signature).entries()) writer.write(type, values[index] ?? '');
  return writer.bytes();
}

class Writer {
  readonly #chunks: Buffer[] = [];
  #length = 0;

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  align(to: number): void {
    const missing = (to - (this.#length % to)) % to;
    if (missing > 0) this.#push(Buffer.alloc(missing));
  }

  write(type: string, value: Value): void {
    this.align(ALIGNMENTS[type[0] ?? ''] ?? 1);
    if (type === 'y') return this.#push(Buffer.of(Number(value)));
    if (type === 'b' || type === 'i' || type === 'u') return this.#number(Number(value));
    if (type === 's' || type === 'o') return this.#text(textOf(value), 4);
    if (type === 'g') return this.#text(textOf(value), 1);
    if (type === 'v') return this.#variant(value as Variant);
    if (type.startsWith('a')) return this.#array(type.slice(1), value as Uint8Array | readonly Value[]);
    for (const [index, member] of typesOf(type.slice(1, -1)).entries()) {
      this.write(member, (value as readonly Value[])[index] ?? '');
    }
  }

  #push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  #number(value: number): void {
    const four = Buffer.alloc(4);
    four.writeUInt32LE(value >>> 0);
    this.#push(four);
  }

  #text(text: string, lengthBytes: 1 | 4): void {
    const bytes = Buffer.from(text, 'utf8');
    if (lengthBytes === 4) this.#number(bytes.length);
    else this.#push(Buffer.of(bytes.length));
    this.#push(bytes);
    this.#push(Buffer.of(0));
  }

  #variant({ signature, value }: Variant): void {
    this.#text(signature, 1);
    this.write(signature, value);
  }

  #array(item: string, values: Uint8Array | readonly Value[]): void {
    const length = Buffer.alloc(4);
    this.#push(length);
    this.align(ALIGNMENTS[item[0] ?? ''] ?? 1);
    const from = this.#length;
    if (values instanceof Uint8Array) this.#push(Buffer.from(values));
    else for (const value of values) this.write(item, value);
    length.writeUInt32LE(this.#length - from);
  }
}

/** The values of these types, from `bytes` on. Fails with `secrets/keyring` on anything else. */
export function unmarshal(signature: string, bytes: Buffer, bigEndian = false): readonly Value[] {
  const reader = new Reader(bytes, bigEndian);
  return typesOf(signature).map((type) => reader.read(type, 0));
}

class Reader {
  readonly #bytes: Buffer;
  readonly #bigEndian: boolean;
  at = 0;

  constructor(bytes: Buffer, bigEndian: boolean) {
    this.#bytes = bytes;
    this.#bigEndian = bigEndian;
  }

  read(type: string, depth: number): Value {
    if (depth > MAX_DEPTH) throw broken('too deeply nested');
    this.align(ALIGNMENTS[type[0] ?? ''] ?? 1);
    if (type === 'y') return this.#take(1)[0] ?? 0;
    if (type === 'b') return this.#number() !== 0;
    if (type === 'u') return this.#number();
    if (type === 'i') return this.#number() | 0;
    if (type === 's' || type === 'o') return this.#text(this.#number());
    if (type === 'g') return this.#text(this.#take(1)[0] ?? 0);
    if (type === 'v') return this.#variant(depth);
    if (type.startsWith('a')) return this.#array(type.slice(1), depth);
    return typesOf(type.slice(1, -1)).map((member) => this.read(member, depth + 1));
  }

  align(to: number): void {
    this.#take((to - (this.at % to)) % to);
  }

  #take(count: number): Buffer {
    if (this.at + count > this.#bytes.length) throw broken('it ends too early');
    this.at += count;
    return this.#bytes.subarray(this.at - count, this.at);
  }

  #number(): number {
    const four = this.#take(4);
    return this.#bigEndian ? four.readUInt32BE() : four.readUInt32LE();
  }

  #text(length: number): string {
    return this.#take(length + 1)
      .subarray(0, length)
      .toString('utf8');
  }

  #variant(depth: number): Variant {
    const signature = this.#text(this.#take(1)[0] ?? 0);
    const [type, ...more] = typesOf(signature);
    if (type === undefined || more.length > 0) throw broken('a variant of no single type');
    return { signature, value: this.read(type, depth + 1) };
  }

  #array(item: string, depth: number): Value {
    const length = this.#number();
    this.align(ALIGNMENTS[item[0] ?? ''] ?? 1);
    if (item === 'y') return new Uint8Array(this.#take(length));
    const end = this.at + length;
    if (end > this.#bytes.length) throw broken('it ends too early');
    const values: Value[] = [];
    while (this.at < end) values.push(this.read(item, depth + 1));
    return values;
  }
}

/** A method call as bytes ("Message Protocol"). */
export function encodeCall(
  serial: number,
  fields: ReadonlyMap<number, Value>,
  signature: string,
  values: readonly Value[],
): Buffer {
  const body = marshal(signature, values);
  const all = new Map(fields);
  if (signature !== '') all.set(SIGNATURE, signature);
  const listed = [...all].map(([code, value]): Value => [
    code,
    { signature: FIELD_TYPES[code] ?? 's', value },
  ]);
  const header = marshal(HEADER, ['l'.charCodeAt(0), METHOD_CALL, 0, 1, body.length, serial, listed]);
  return Buffer.concat([header, Buffer.alloc((8 - (header.length % 8)) % 8), body]);
}

/** The first whole message of `bytes`, and how long it is; undefined while more has to come. */
export function decodeMessage(
  bytes: Buffer,
): { readonly message: Message; readonly length: number } | undefined {
  if (bytes.length < 16) return undefined;
  const bigEndian = bytes[0] === 'B'.charCodeAt(0);
  const number = (at: number): number => (bigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at));
  const bodyAt = 16 + Math.ceil(number(12) / 8) * 8;
  const length = bodyAt + number(4);
  if (length > MAX_MESSAGE_BYTES) throw broken('a message is too long');
  if (bytes.length < length) return undefined;
  const header = unmarshal(HEADER, bytes.subarray(0, bodyAt), bigEndian);
  const fields = new Map(
    (header[6] as readonly [number, Variant][]).map(([code, { value }]) => [code, value]),
  );
  const type = Number(header[1]);
  const signature = textOf(fields.get(SIGNATURE));
  // Signals are not listened to, and may have types that are not known here.
  const isAnswer = type === METHOD_RETURN || type === ERROR;
  const body = isAnswer ? unmarshal(signature, bytes.subarray(bodyAt, length), bigEndian) : [];
  return { message: { type, serial: Number(header[5]), fields, body }, length };
}
