/** A question for a name (RFC 1035 §4.1.2). */
export interface Question {
  readonly id: number;
  readonly type: number;
  readonly class: number;
  /** Labels joined by dots, as they were sent; a dot or control character inside of a label makes a question unreadable. */
  readonly name: string;
  /** Bytes of the question section, which the answer repeats. */
  readonly section: Buffer;
  readonly recursionDesired: boolean;
}

export const TYPE = { A: 1, AAAA: 28 } as const;
export const CLASS_IN = 1;
export const CODE = { none: 0, notImplemented: 4, noSuchName: 3, refused: 5 } as const;

const HEADER_BYTES = 12;
const MAX_NAME_BYTES = 255;
const RESPONSE = 0x8000;
const OPCODE = 0x7800;
const RECURSION_DESIRED = 0x0100;
const RECURSION_AVAILABLE = 0x0080;
/** What follows a question without compression: its name, at the first byte after the header. */
const NAME_OF_QUESTION = 0xc000 | HEADER_BYTES;
const TTL_SECONDS = 5;

/**
 * Reads a query with one question; undefined for anything else, which is not answered. Records that follow the question
 * (EDNS) are not read.
 */
export function readQuestion(message: Buffer): Question | undefined {
  if (message.length < HEADER_BYTES) return undefined;
  const flags = message.readUInt16BE(2);
  if ((flags & (RESPONSE | OPCODE)) !== 0 || message.readUInt16BE(4) !== 1) return undefined;
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const length = message[at];
    // The two high bits would point elsewhere (RFC 1035 §4.1.4), which a first name has no use for.
    if (length === undefined || length > 63 || at + length + 1 - HEADER_BYTES > MAX_NAME_BYTES)
      return undefined;
    at += 1;
    if (length === 0) break;
    const label = message.subarray(at, at + length).toString('latin1');
    if (label.length < length || !/^[!-\-/-~]+$/.test(label)) return undefined;
    labels.push(label);
    at += length;
  }
  if (at + 4 > message.length) return undefined;
  return {
    id: message.readUInt16BE(0),
    type: message.readUInt16BE(at),
    class: message.readUInt16BE(at + 2),
    name: labels.join('.'),
    section: message.subarray(HEADER_BYTES, at + 4),
    recursionDesired: (flags & RECURSION_DESIRED) !== 0,
  };
}

/** The answer to a question: a code, and the addresses (as bytes) of its type. */
export function answerTo(question: Question, code: number, addresses: readonly Uint8Array[] = []): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  const asked = question.recursionDesired ? RECURSION_DESIRED : 0;
  header.writeUInt16BE(question.id, 0);
  header.writeUInt16BE(RESPONSE | asked | RECURSION_AVAILABLE | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => {
    const record = Buffer.alloc(12);
    record.writeUInt16BE(NAME_OF_QUESTION, 0);
    record.writeUInt16BE(question.type, 2);
    record.writeUInt16BE(CLASS_IN, 4);
    record.writeUInt32BE(TTL_SECONDS, 6);
    record.writeUInt16BE(address.length, 10);
    return Buffer.concat([record, address]);
  });
  return Buffer.concat([header, question.section, ...records]);
}
