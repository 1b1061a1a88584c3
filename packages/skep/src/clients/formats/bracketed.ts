/** Something between brackets with commas between its items, as an offset range each. */
export interface Bracketed {
  /** Behind the opening bracket. */
  readonly open: number;
  /** Of the closing bracket. */
  readonly close: number;
  readonly items: readonly Range[];
}

export interface Range {
  readonly start: number;
  readonly end: number;
}

export interface Style {
  readonly eol: string;
  /** One step of indentation. */
  readonly unit: string;
  /** One comment; sticky. Its match ends before the line does, or with the comment. */
  readonly comment: RegExp;
}

/** An item's text where it stands on lines of its own, indented by `indent`; undefined: on one line. */
export type ItemText = (indent: string | undefined) => string;

/** The line end that a text uses. */
export const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

/** The indentation of the line at `at`. */
export function indentAt(text: string, at: number): string {
  const start = text.lastIndexOf('\n', at - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, Math.max(start, at) + 1))?.[0] ?? '';
}

/** The text with one more item, behind all others and what is said of the last one on its line. */
export function insertItem(text: string, list: Bracketed, item: ItemText, style: Style): string {
  const last = list.items.at(-1);
  if (!last) return fill(text, list, item, style);
  const comma = commaAfter(text, last.end, list.close, style);
  const isInline = !text.slice(list.open, list.items[0]?.start).includes('\n');
  if (isInline) {
    const gap = text.trim().includes('\n') || text.includes(', ') ? ' ' : '';
    return comma === undefined
      ? splice(text, last.end, last.end, `,${gap}${item(undefined)}`)
      : splice(text, comma + 1, comma + 1, `${gap}${item(undefined)},`);
  }
  const indent = indentAt(text, last.start);
  const added = `${style.eol}${indent}${item(indent)}`;
  if (comma !== undefined) {
    const at = endOfRemark(text, comma + 1, style);
    return splice(text, at, at, `${added},`);
  }
  const at = endOfRemark(text, last.end, style);
  return splice(splice(text, at, at, added), last.end, last.end, ',');
}

/** The first item of an empty list, below its comments. */
function fill(text: string, { open, close }: Bracketed, item: ItemText, { eol, unit }: Style): string {
  const inside = text.slice(open, close);
  const kept = inside.trimEnd();
  const base = indentAt(text, open - 1);
  const indent = base + unit;
  if (kept !== '') {
    const at = open + kept.length;
    return splice(text, at, at, `${eol}${indent}${item(indent)}`);
  }
  // A file in one line stays one.
  const line = text.trim();
  const isOneLine = line.length > '{}'.length && !line.includes('\n');
  const filled = isOneLine ? item(undefined) : `${eol}${indent}${item(indent)}${eol}${base}`;
  return splice(text, open, close, filled);
}

/** The text without the item at `index`; nothing but white space left in the list becomes `emptied`. */
export function removeItem(
  text: string,
  list: Bracketed,
  { index, emptied = '' }: { readonly index: number; readonly emptied?: string | undefined },
  style: Style,
): string {
  const item = list.items[index];
  if (!item) return text;
  const before = list.items[index - 1]?.end ?? list.open;
  const comma = commaAfter(text, item.end, list.close, style);
  const earlier = comma === undefined && index > 0 ? commaAfter(text, before, item.start, style) : undefined;
  const start = startOfGap(text, { before, item, comma }, style);
  const cuts: Range[] = [{ start, end: item.end }];
  if (comma !== undefined) cuts.push({ start: comma, end: comma + 1 });
  if (earlier !== undefined) cuts.push({ start: earlier, end: earlier + 1 });
  const removed = cuts.reduce((sum, cut) => sum + cut.end - cut.start, 0);
  const left = cuts
    .toSorted((one, other) => other.start - one.start)
    .reduce((rest, cut) => splice(rest, cut.start, cut.end, ''), text);
  const close = list.close - removed;
  const isEmpty = list.items.length === 1 && left.slice(list.open, close).trim() === '';
  return isEmpty ? splice(left, list.open, close, emptied) : left;
}

/** White space before an item goes with it, unless it is what ends a comment. */
function startOfGap(
  text: string,
  { before, item, comma }: { before: number; item: Range; comma: number | undefined },
  style: Style,
): number {
  const start = before + text.slice(before, item.start).trimEnd().length;
  let isOpenEnded = false;
  for (let at = before; at < item.start;) {
    const end = commentAt(text, at, style);
    if (end === start) isOpenEnded = !text.startsWith('/*', at);
    at = end ?? at + 1;
  }
  const rest = text.slice(comma === undefined ? item.end : comma + 1);
  return isOpenEnded && !/^[ \t]*\r?\n/.test(rest) ? item.start : start;
}

/** The comma behind `from`, across white space and comments. */
function commaAfter(text: string, from: number, until: number, style: Style): number | undefined {
  for (let at = from; at < until;) {
    const end = commentAt(text, at, style);
    if (end !== undefined) at = end;
    else if (text[at] === ',') return at;
    else at += 1;
  }
  return undefined;
}

/** The end of the comments that follow on the same line; `at` itself where none does. */
function endOfRemark(text: string, at: number, style: Style): number {
  for (let next = at; ;) {
    while (text[next] === ' ' || text[next] === '\t') next += 1;
    const end = commentAt(text, next, style);
    if (end === undefined) return at;
    at = end;
    next = end;
  }
}

function commentAt(text: string, at: number, { comment }: Style): number | undefined {
  comment.lastIndex = at;
  return comment.test(text) ? comment.lastIndex : undefined;
}

export function splice(text: string, start: number, end: number, by: string): string {
  return text.slice(0, start) + by + text.slice(end);
}
