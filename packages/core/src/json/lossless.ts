import { SkepError } from '../errors/skep-error.ts';
import { jsonErrorPlace } from './judge.ts';
import { parseJson } from './parsed-json.ts';
import { withPlainNames } from './scan.ts';

export interface ParseLimits {
  /** UTF-8 bytes. */
  readonly maxBytes: number;
  /** What is parsed, for messages, for example `server message`. */
  readonly what?: string;
}

/**
 * A JSON number that a JavaScript number would change: `1.0`, `1e400`, `-0`, integers beyond 2^53. `JSON.stringify`
 * writes its text back as it was.
 */
export interface RawNumber {
  readonly rawJSON: string;
}

/** What Node has of JSON source text access, and the TypeScript library does not declare yet. */
interface SourceTextJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): RawNumber;
}

const json = JSON as unknown as SourceTextJson;

/**
 * Parses JSON (RFC 8259) so that `serializeLossless` gives the same numbers back digit by digit: a number that
 * would not survive becomes a RawNumber. Members named `__proto__` are plain data; members keep their order, except that
 * JavaScript puts names that are array indexes first. Fails with `json/too-large` or
 * `json/invalid`, the latter naming line and column.
 */
export function parseLossless(input: string | Uint8Array, limits: ParseLimits): unknown {
  const what = limits.what ?? 'document';
  const bytes = typeof input === 'string' ? Buffer.byteLength(input) : input.byteLength;
  if (bytes > limits.maxBytes) {
    throw new SkepError('json/too-large', {
      message: `${what} is larger than ${limits.maxBytes} bytes`,
      detail: { bytes, maxBytes: limits.maxBytes },
    });
  }
  const text = typeof input === 'string' ? input : decodeUtf8(input, what);
  try {
    return mayLoseDigits(text) ? json.parse(withPlainNames(text), keepSource) : parseJson(text);
  } catch (cause) {
    throw invalidJson(text, what, cause);
  }
}

/** JSON text of a value from `parseLossless`, changed or not; `indent` blanks a level, and lines, where it is given. */
export function serializeLossless(value: unknown, indent?: number): string {
  const text: string | undefined = JSON.stringify(value, undefined, indent);
  if (text === undefined) throw new SkepError('internal/bug', { message: 'a value has no JSON form' });
  return text;
}

/**
 * Parsing with a reviver takes several times longer, so it is kept for texts where a number with a fraction, an exponent,
 * 16 digits or a negative zero may stand. Text inside strings can raise a false alarm, never hide a number.
 */
function mayLoseDigits(text: string): boolean {
  return /(?:^|[[:,\s])-?(?:\d{16}|\d+[.eE]|(?<=-)0)/u.test(text);
}

function keepSource(_key: string, value: unknown, context: { source?: string }): unknown {
  const { source } = context;
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value;
  return json.rawJSON(source);
}

function decodeUtf8(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new SkepError('json/invalid', { message: `${what} is not UTF-8 text`, cause });
  }
}

function invalidJson(text: string, what: string, cause: unknown): SkepError {
  const place = jsonErrorPlace(text);
  // valid, yet refused: the reviver ran out of stack
  const why =
    place === undefined
      ? 'nested too deeply'
      : `not valid JSON at line ${place.line}, column ${place.column}`;
  return new SkepError('json/invalid', { message: `${what} is ${why}`, cause });
}
