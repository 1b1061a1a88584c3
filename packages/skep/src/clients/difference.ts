/** One line of a difference, as `diff -u` marks it. */
export interface DifferenceLine {
  readonly mark: '-' | '+' | '@';
  readonly text: string;
}

/** Lines of one side that are compared one by one; beyond it, those are shown that only one side has. */
const MAX_COMPARED = 2_000;
/** A common beginning or end of a changed line is cut from here on: it says nothing, and may hold what is secret. */
const MAX_COMMON = 16;

/**
 * The lines that differ, without those around them: a neighbour's entry may hold keys. Of a line that changes, what stays
 * at both ends is left out; lines that only differ in commas are not shown.
 */
export function differenceOf(before: string, after: string): readonly DifferenceLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < now.length && isSame(old[start], now[start])) start += 1;
  let same = 0;
  const room = Math.min(old.length, now.length) - start;
  while (same < room && isSame(old.at(-1 - same), now.at(-1 - same))) same += 1;
  const blocks = compare(old.slice(start, old.length - same), now.slice(start, now.length - same));
  return blocks.flatMap(({ at, gone, come }) => {
    const shown = shorten(gone, come);
    return shown.length === 0 ? [] : [{ mark: '@', text: `line ${start + at + 1}` } as const, ...shown];
  });
}

const linesOf = (text: string): readonly string[] =>
  text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/);

/** A comma more or less is no news, and would show the neighbour that it belongs to. */
const isSame = (one = '', other = ''): boolean => withoutCommas(one) === withoutCommas(other);
const withoutCommas = (text: string): string => text.replaceAll(',', '');

interface Block {
  /** Line of the new text, from 0. */
  readonly at: number;
  readonly gone: string[];
  readonly come: string[];
}

/** The blocks that differ, by the longest common subsequence. */
function compare(old: readonly string[], now: readonly string[]): readonly Block[] {
  if (old.length > MAX_COMPARED || now.length > MAX_COMPARED)
    return [{ at: 0, gone: onlyIn(old, now), come: onlyIn(now, old) }];
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let one = old.length - 1; one >= 0; one -= 1) {
    for (let other = now.length - 1; other >= 0; other -= 1) {
      lengths[one * width + other] = isSame(old[one], now[other])
        ? (lengths[(one + 1) * width + other + 1] ?? 0) + 1
        : Math.max(lengths[(one + 1) * width + other] ?? 0, lengths[one * width + other + 1] ?? 0);
    }
  }
  const blocks: Block[] = [];
  let open: Block | undefined;
  for (let one = 0, other = 0; one < old.length || other < now.length;) {
    const [gone, come] = [old[one], now[other]];
    if (gone !== undefined && isSame(gone, come)) {
      open = undefined;
      one += 1;
      other += 1;
      continue;
    }
    if (!open) blocks.push((open = { at: other, gone: [], come: [] }));
    const isGone = (lengths[(one + 1) * width + other] ?? 0) >= (lengths[one * width + other + 1] ?? 0);
    if (gone !== undefined && (come === undefined || isGone)) {
      open.gone.push(gone);
      one += 1;
    } else if (come !== undefined) {
      open.come.push(come);
      other += 1;
    }
  }
  return blocks;
}

function onlyIn(some: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others.map(withoutCommas));
  return some.filter((one) => !known.has(withoutCommas(one)));
}

/** The lines of a block as they are shown. */
function shorten(gone: readonly string[], come: readonly string[]): readonly DifferenceLine[] {
  const [old, now] = [gone[0], come[0]];
  if (old === undefined || now === undefined) return [...marked('-', gone), ...marked('+', come)];
  const [less, more] = withoutCommon(old, now);
  return [
    ...marked('-', less === '' ? [] : [less]),
    ...marked('-', gone.slice(1)),
    ...marked('+', more === '' ? [] : [more]),
    ...marked('+', come.slice(1)),
  ];
}

function marked(mark: '-' | '+', lines: readonly string[]): readonly DifferenceLine[] {
  return lines.map((text) => ({ mark, text }));
}

/**
 * Two lines without what they have in common at both ends, where that is long, and between several changes; '' for one
 * that has nothing else.
 */
function withoutCommon(old: string, now: string): readonly [string, string] {
  const most = Math.min(old.length, now.length);
  let head = 0;
  while (head < most && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < most - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  if (head + tail <= MAX_COMMON) return [old, now];
  const parts = [partsOf(old), partsOf(now)] as const;
  const blocks = compare(...parts);
  if (blocks.length > 1 || parts.some(({ length }) => length > MAX_COMPARED))
    return [changesOf(blocks, 'gone'), changesOf(blocks, 'come')];
  const cut = (line: string): string => {
    const middle = line.slice(head, line.length - tail);
    return middle === '' ? '' : `${head > 0 ? '…' : ''}${middle}${tail > 0 ? '…' : ''}`;
  };
  return [cut(old), cut(now)];
}

/** The parts of a line that brackets and commas make. */
const partsOf = (line: string): readonly string[] => line.match(/[^,[\]{}]*[,[\]{}]|[^,[\]{}]+$/g) ?? [];

function changesOf(blocks: readonly Block[], side: 'gone' | 'come'): string {
  const changes = blocks.map((block) => block[side].join('')).filter((change) => change !== '');
  return changes.length === 0 ? '' : `…${changes.join('…')}…`;
}
