import { SkepError } from '../errors/skep-error.ts';
import { jsonErrorPlace } from '../json/error-place.ts';
import { nestsDeeperThan } from './json-slices.ts';

export const MAX_CATALOGUE_BYTES = 100 * 1024 * 1024;

/** Far above any real document (tool schemas reach about 20). */
const MAX_DEPTH = 200;

interface TextOptions {
  readonly label: string;
  readonly maxBytes?: number;
}

function decodeUtf8(bytes: Uint8Array, label: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new SkepError('catalog/not-json', { message: `"${label}" is not UTF-8 text`, cause });
  }
}

/**
 * The text and value of a catalogue, byte order mark removed. Throws `catalog/too-large`,
 * `catalog/not-json`, and `catalog/wrong-shape` for text that nests absurdly deep.
 */
export function parseCatalogueText(
  input: string | Uint8Array,
  options: TextOptions,
): { text: string; value: unknown } {
  const { label, maxBytes = MAX_CATALOGUE_BYTES } = options;
  const size = typeof input === 'string' ? Buffer.byteLength(input) : input.byteLength;
  if (size > maxBytes) {
    throw new SkepError('catalog/too-large', {
      message: `"${label}" has ${size} bytes, at most ${maxBytes} are read`,
    });
  }
  const decoded = typeof input === 'string' ? input : decodeUtf8(input, label);
  const text = decoded.startsWith('\uFEFF') ? decoded.slice(1) : decoded;
  const value = parsed(text, label);
  if (nestsDeeperThan(text, MAX_DEPTH)) {
    throw new SkepError('catalog/wrong-shape', {
      message: `"${label}" nests deeper than ${MAX_DEPTH} levels`,
    });
  }
  return { text, value };
}

function parsed(text: string, label: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const place = jsonErrorPlace(text);
    const at = place === undefined ? '' : `: line ${place.line}, column ${place.column}`;
    throw new SkepError('catalog/not-json', { message: `"${label}" is not valid JSON${at}`, cause });
  }
}
