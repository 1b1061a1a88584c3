import { findElements, findMembers, findPath, rawAt, type Edit, type Span } from '@skep/core/json/scan.ts';
import { copyPiece, withEdits, type Response } from './json-rpc.ts';

/** The answer to a request for a list. */
export interface ListAnswer<Item> {
  readonly items: readonly Item[];
  /** The answer with those items alone that `keeps` holds for, for this caller only; every other character stays. */
  with(keeps: readonly boolean[]): Response;
}

/** More are not looked at. */
const MAX_ITEMS = 10_000;
/** A longer result is not remembered. */
const MAX_REMEMBERED = 1024 * 1024;

/** A result, as it was read; places are within it. */
interface Read<Item> {
  readonly list: Span;
  readonly scope: Span | undefined;
  /** Raw JSON text of each item. */
  readonly texts: readonly string[];
  readonly items: readonly Item[];
}

/** Reads the lists in answers. Servers tell the same list again and again, so the latest is not read twice. */
export class ListReader<Item> {
  readonly #members: ReadonlySet<string>;
  readonly #member: string;
  readonly #itemOf: (text: string) => Item | undefined;
  #last: { readonly result: string; readonly read: Read<Item> | undefined } | undefined;

  /** The list is `result[member]`; `itemOf` reads the raw JSON text of an item, and gives nothing for what is none. */
  constructor(member: string, itemOf: (text: string) => Item | undefined) {
    this.#member = member;
    this.#members = new Set([member, 'cacheScope']);
    this.#itemOf = itemOf;
  }

  /** Undefined where there is no such list, an item is none, or two readers might see different ones. */
  read(answer: Response): ListAnswer<Item> | undefined {
    const at = findPath(answer.text, ['result']);
    const read = at && this.#readOnce(rawAt(answer.text, at));
    if (at === undefined || read === undefined) return undefined;
    return { items: read.items, with: (keeps) => withKept(answer, at.start, { ...read, keeps }) };
  }

  #readOnce(result: string): Read<Item> | undefined {
    if (this.#last?.result === result) return this.#last.read;
    if (result.length > MAX_REMEMBERED) return this.#read(result);
    // What is kept is to keep nothing else of its answer.
    const copy = copyPiece(result);
    const read = this.#read(copy);
    this.#last = { result: copy, read };
    return read;
  }

  #read(result: string): Read<Item> | undefined {
    const members = findMembers(result, 0, this.#members);
    const list = members?.get(this.#member);
    if (list === undefined || result[list.start] !== '[') return undefined;
    const text = rawAt(result, list);
    const texts = findElements(text, MAX_ITEMS + 1).map((item) => rawAt(text, item));
    const items = texts.length > MAX_ITEMS ? [] : texts.map(this.#itemOf);
    if (items.length < texts.length || !items.every((item) => item !== undefined)) return undefined;
    return { list, scope: members?.get('cacheScope'), texts, items };
  }
}

/** A list that is read this once, item by item as it is written. */
export function readList(answer: Response, member: string): ListAnswer<string> | undefined {
  return new ListReader(member, (text) => text).read(answer);
}

function withKept(
  answer: Response,
  start: number,
  { list, scope, texts, keeps }: Read<unknown> & { readonly keeps: readonly boolean[] },
): Response {
  if (scope === undefined && texts.every((_, index) => keeps[index])) return answer;
  const kept = texts.filter((_, index) => keeps[index] === true);
  const edits: Edit[] = [{ span: list, text: `[${kept.join(',')}]` }];
  // Shared caches (MCP 2026-07-28) would show it to others.
  if (scope !== undefined) edits.push({ span: scope, text: '"private"' });
  return withEdits(
    answer,
    edits.map(({ span, text }) => ({ span: { start: start + span.start, end: start + span.end }, text })),
  );
}
