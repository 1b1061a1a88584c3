import { isUtf8 } from 'node:buffer';
import { SkepError } from '../errors/skep-error.ts';
import { jsonErrorPlace } from '../json/judge.ts';
import { parseJson } from '../json/parsed-json.ts';
import { isDeeperThan } from '../json/scan.ts';

export const MAX_CATALOGUE_BYTES = 100 * 1024 * 1024;

/** What a catalogue of that size has, if it is a real one. */
const MAX_VALUES = 5_000_000;

/** Far above any real document (tool schemas reach about 20). */
export const MAX_DEPTH = 200;

export interface TextOptions {
  /** What to call the catalogue in messages. */
  readonly label: string;
  /** Default 100 MiB. */
  readonly maxBytes?: number;
}

const BYTE_ORDER_MARK = Buffer.of(0xef, 0xbb, 0xbf);

/** UTF-8 of a catalogue, byte order mark removed. Throws `catalog/too-large` and `catalog/not-json`. */
export function catalogueBytes(input: string | Uint8Array, options: TextOptions): Buffer {
  const { label, maxBytes = MAX_CATALOGUE_BYTES } = options;
  const size = typeof input === 'string' ? Buffer.byteLength(input) : input.byteLength;
  if (size > maxBytes) {
    throw new SkepError('catalog/too-large', {
      message: `"${label}" has ${size} bytes, at most ${maxBytes} are read`,
    });
  }
  if (typeof input !== 'string' && !isUtf8(input)) {
    throw new SkepError('catalog/not-json', { message: `"${label}" is not UTF-8 text` });
  }
  const bytes = typeof input === 'string' ? Buffer.from(input) : bufferOver(input);
  if (mayHoldMoreValuesThan(MAX_VALUES, bytes)) {
    throw new SkepError('catalog/too-large', {
      message: `"${label}" has more than ${MAX_VALUES} values, which take more memory than a catalogue may`,
    });
  }
  return bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? bytes.subarray(3) : bytes;
}

function bufferOver({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/**
 * The text and value of a catalogue, byte order mark removed. Throws `catalog/too-large`,
 * `catalog/not-json`, and `catalog/wrong-shape` for text that nests absurdly deep.
 */
export function parseCatalogueText(
  input: string | Uint8Array,
  options: TextOptions,
): { text: string; value: unknown } {
  const { label } = options;
  const text = catalogueBytes(input, options).toString('utf8');
  const value = parsed(text, label);
  if (isDeeperThan(MAX_DEPTH, text)) throw tooDeep(label);
  return { text, value };
}

export function tooDeep(label: string): SkepError {
  return new SkepError('catalog/wrong-shape', {
    message: `"${label}" nests deeper than ${MAX_DEPTH} levels`,
  });
}

/** For text that JSON.parse has refused with `cause`; says where it breaks. */
export function notJson(text: string, label: string, cause: unknown): SkepError {
  const place = jsonErrorPlace(text);
  const at = place === undefined ? '' : `: line ${place.line}, column ${place.column}`;
  return new SkepError('catalog/not-json', { message: `"${label}" is not valid JSON${at}`, cause });
}

function parsed(text: string, label: string): unknown {
  try {
    return parseJson(text);
  } catch (cause) {
    throw notJson(text, label, cause);
  }
}

const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/**
 * Whether JSON may hold more values than that: short values take forty times their bytes once they are parsed, so bytes
 * alone bound no memory. Looks at every byte once, before anything is made of them; commas in texts count as well, as it
 * is the order of magnitude that matters. Real catalogues have some thirty bytes to a value.
 */
export function mayHoldMoreValuesThan(limit: number, json: Uint8Array): boolean {
  let values = 0;
  for (let at = 0; at < json.length && values <= limit; at += 1) {
    const byte = json[at];
    if (byte === COMMA || byte === BRACE || byte === BRACKET) values += 1;
  }
  return values > limit;
}
