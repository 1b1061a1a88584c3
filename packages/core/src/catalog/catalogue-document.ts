import { parseJson } from '../json/parsed-json.ts';
import { compactText, type CompactText } from '../json/scan.ts';
import { MAX_DEPTH, notJson, tooDeep } from './catalogue-text.ts';

/** A catalogue read as far as its lists, which are long and are decoded one element at a time. */
export type CatalogueDocument = ReturnType<typeof openDocument>;

/**
 * Opens a catalogue of valid UTF-8; `label` names it in messages. Throws `catalog/not-json` (with line and column), and
 * `catalog/wrong-shape` for text that nests absurdly deep.
 */
export function openDocument(bytes: Buffer, label: string) {
  const text = (): string => bytes.toString('utf8');
  const explained = (cause: unknown): unknown =>
    cause instanceof SyntaxError ? notJson(text(), label, cause) : cause;
  const parsed = (json: string): unknown => {
    try {
      return parseJson(json);
    } catch (cause) {
      throw explained(cause);
    }
  };
  const { frame, lists, depth } = cutLists(bytes);
  if (depth > MAX_DEPTH) {
    parsed(text());
    throw tooDeep(label);
  }
  /** The elements of a placeholder; of anything else none. Throws `catalog/not-json`. */
  function* elements(placeholder: unknown): Generator<Element> {
    const list = lists[numberOf(placeholder)];
    if (list === undefined) return;
    try {
      yield* listElements(bytes, list);
    } catch (cause) {
      throw explained(cause);
    }
  }
  return {
    /** The document decoded, with a placeholder for each of the outermost lists: an array that stands for its elements. */
    frame: parsed(frame),
    elements,
    /** Reads the lists that are not among these, only to see that they are JSON. Throws `catalog/not-json`. */
    checkOthers(placeholders: readonly unknown[]): void {
      const known = new Set(placeholders.map(numberOf));
      for (const index of lists.keys()) {
        if (!known.has(index)) for (const element of elements([index])) void element;
      }
    },
    /** All of it at once, for documents without long lists. Throws `catalog/not-json`. */
    whole(): { readonly value: unknown; readonly json: string } {
      const json = text();
      return { value: parsed(json), json };
    },
  };
}

function numberOf(placeholder: unknown): number {
  const number: unknown = Array.isArray(placeholder) ? placeholder[0] : undefined;
  return typeof number === 'number' ? number : -1;
}

/**
 * Reads the long lists of a JSON document (RFC 8259) one element at a time, so that a catalogue needs the memory of one
 * entry besides its own bytes. All structural characters of JSON are ASCII, so that UTF-8 can be walked byte by byte.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Lists inside so many objects are cut out: `[…]`, `{servers: […]}` and `{data: {servers: […]}}`. */
const DEEPEST_LIST = 2;
/** A depth that is never reached. */
const NOWHERE = Infinity;

/** Offsets of what stands between the brackets. */
interface List {
  readonly start: number;
  readonly end: number;
}

interface CutDocument {
  /** The document with `[n]` in place of each list `n` of `lists`. */
  readonly frame: string;
  readonly lists: readonly List[];
  /** How deep arrays and objects nest. */
  readonly depth: number;
}

/** One element of a list: decoded, and as compact text with the exact spelling of every token. */
export interface Element extends CompactText {
  readonly value: unknown;
  /** Offsets of its bytes in the document. */
  readonly start: number;
  readonly end: number;
}

/**
 * Cuts the outermost lists out of a document. The document is JSON if, and only if, the frame is and `listElements` comes
 * to the end of every list: the frame keeps all brackets, also those that do not fit.
 */
function cutLists(bytes: Buffer): CutDocument {
  const lists: List[] = [];
  let frame = '';
  let from = 0;
  let listAt = NOWHERE;
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at, bytes.length) - 1;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      if (byte === OPEN_LIST && listAt === NOWHERE && depth <= DEEPEST_LIST) {
        listAt = depth;
        frame += `${bytes.toString('utf8', from, at + 1)}${lists.length}`;
        from = at + 1;
      }
      if (++depth > deepest) deepest = depth;
    } else if ((byte === CLOSE_LIST || byte === CLOSE_OBJECT) && --depth === listAt) {
      lists.push({ start: from, end: at });
      listAt = NOWHERE;
      from = at;
    }
  }
  return { frame: frame + bytes.toString('utf8', from), lists, depth: deepest };
}

/** The elements of a list of `cutLists`, in order. Throws the SyntaxError of JSON.parse at the first that is none. */
function* listElements(bytes: Buffer, { start, end }: List): Generator<Element> {
  let from = skipSpace(bytes, start, end);
  while (from < end) {
    let depth = 0;
    let members = 0;
    let hasSpace = false;
    let at = from;
    for (; at < end; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) at = endOfString(bytes, at, end) - 1;
      else if (byte === COLON) members++;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth++;
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
      else if (byte === COMMA && depth === 0) break;
      else if (isSpace(byte)) hasSpace = true;
    }
    const json = bytes.toString('utf8', from, at);
    const value = parseJson(json);
    yield { value, start: from, end: at, ...(hasSpace ? compactText(json) : { json, members }) };
    if (at === end) return;
    from = skipSpace(bytes, at + 1, end);
    // What follows a comma must be an element: this is how JSON.parse says it.
    if (from === end) JSON.parse('');
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function skipSpace(bytes: Buffer, at: number, end: number): number {
  while (at < end && isSpace(bytes[at])) at++;
  return at;
}

/** `at` is on the opening quote; the offset after the closing one, at most `end`. */
function endOfString(bytes: Buffer, at: number, end: number): number {
  for (let i = at + 1; i < end; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) return i + 1;
    if (byte === BACKSLASH) i++;
  }
  return end;
}
