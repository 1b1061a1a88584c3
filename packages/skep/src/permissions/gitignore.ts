/**
 * The patterns of one ignore file, with the meaning that gitignore(5) gives them. Whoever may write the file may be hostile,
 * so matching takes time in proportion to the lengths of pattern and path, never more.
 */
export interface IgnorePatterns {
  readonly rules: readonly IgnoreRule[];
}

interface IgnoreRule {
  /** `!`: what an earlier pattern excluded is included again. */
  readonly includes: boolean;
  /** A trailing slash: directories alone. */
  readonly directoriesOnly: boolean;
  /** One for each name of the path; `**` for any number of them. */
  readonly segments: readonly (readonly Token[] | '**')[];
}

type Token = 'one' | 'many' | ((character: string, effort: Effort) => boolean);

/** How many steps matching may still take; below zero it has given up. */
export interface Effort {
  left: number;
}

/** Reads the text of an ignore file. Every text is one: a pattern that could match nothing matches nothing. */
export function parseIgnore(text: string): IgnorePatterns {
  const rules = text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .flatMap((line) => ruleOf(line.replace(/\r$/, '')));
  return { rules };
}

function ruleOf(line: string): IgnoreRule[] {
  if (line.startsWith('#')) return [];
  const includes = line.startsWith('!');
  // Unlike git, which lets such a pattern match nothing: what somebody asked to hide is hidden.
  const pattern = withoutTrailingBlanks(includes ? line.slice(1) : line).replaceAll(/\/{2,}/g, '/');
  const directoriesOnly = pattern.endsWith('/');
  const path = directoriesOnly ? pattern.slice(0, -1) : pattern;
  // A slash at the beginning or in the middle ties a pattern to the directory of its file.
  const tied = path.includes('/');
  const segments = segmentsOf(path.replace(/^\//, ''), tied);
  if (path === '' || segments === undefined) return [];
  return [{ includes, directoriesOnly, segments: tied ? segments : ['**', ...segments] }];
}

/** A blank at the end counts only behind a backslash. */
function withoutTrailingBlanks(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === ' ' && !isEscaped(text, end - 1)) end -= 1;
  return text.slice(0, end);
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes += 1;
  return slashes % 2 === 1;
}

/** Undefined where the pattern is broken, as by a backslash at its end: it matches nothing. */
function segmentsOf(text: string, tied: boolean): IgnoreRule['segments'] | undefined {
  const characters = Array.from(text);
  const segments: Token[][] = [[]];
  const deep = new Set<readonly Token[]>();
  for (let at = 0; at < characters.length; at += 1) {
    const last = segments.at(-1) ?? [];
    const token = tokenAt(characters, at);
    if (token === undefined) return undefined;
    if (token.means === '/') segments.push([]);
    // Two of them mean any number of names where they stand alone between slashes.
    else if (token.means === 'many' && last.at(-1) === 'many') deep.add(last);
    else last.push(token.means);
    at = token.end;
  }
  return segments.map((one) => (tied && one.length === 1 && deep.has(one) ? '**' : one));
}

/** The token that begins there, and where it ends. A backslash takes nothing from the meaning of a slash. */
function tokenAt(
  characters: readonly string[],
  at: number,
): { readonly means: Token | '/'; readonly end: number } | undefined {
  const character = characters[at];
  if (character === '*') return { means: 'many', end: at };
  if (character === '?') return { means: 'one', end: at };
  if (character === '[') {
    const found = classAt(characters, at + 1);
    return found && { means: found.matches, end: found.end };
  }
  const end = character === '\\' ? at + 1 : at;
  const literal = characters[end];
  if (literal === undefined) return undefined;
  return { means: literal === '/' ? '/' : (one) => one === literal, end };
}

const NAMED: Readonly<Record<string, RegExp>> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  // What comes before the blank, and DEL.
  cntrl: /[^ -\u{10ffff}]|\u007f/u,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[ \t-\r]/,
  upper: /[A-Z]/,
  xdigit: /[0-9A-Fa-f]/,
};

interface CharacterClass {
  readonly matches: (character: string, effort: Effort) => boolean;
  /** Where its closing bracket stands. */
  readonly end: number;
}

/** A bracket expression that begins behind `[`; undefined when nothing closes it. */
function classAt(characters: readonly string[], start: number): CharacterClass | undefined {
  const negated = characters[start] === '!' || characters[start] === '^';
  const first = negated ? start + 1 : start;
  const members: ((character: string) => boolean)[] = [];
  let at = first;
  // A bracket that comes first is one of the characters.
  while (at === first || characters[at] !== ']') {
    const named = namedAt(characters, at);
    if (named) {
      members.push((one) => named.pattern.test(one));
      at = named.next;
      continue;
    }
    const low = literalAt(characters, at);
    if (low === undefined) return undefined;
    const isRange = characters[low.next] === '-' && (characters[low.next + 1] ?? ']') !== ']';
    const high = isRange ? literalAt(characters, low.next + 1) : low;
    if (high === undefined) return undefined;
    members.push((one) => one >= low.character && one <= high.character);
    at = high.next;
  }
  const matches: CharacterClass['matches'] = (one, effort) => {
    effort.left -= members.length;
    return members.some((member) => member(one)) !== negated;
  };
  return { matches, end: at };
}

function namedAt(characters: readonly string[], at: number): { pattern: RegExp; next: number } | undefined {
  if (characters[at] !== '[' || characters[at + 1] !== ':') return undefined;
  const [, name = ''] = /^\[:([a-z]+):\]/.exec(characters.slice(at, at + 12).join('')) ?? [];
  const pattern = Object.hasOwn(NAMED, name) ? NAMED[name] : undefined;
  return pattern && { pattern, next: at + name.length + 4 };
}

function literalAt(
  characters: readonly string[],
  at: number,
): { character: string; next: number } | undefined {
  const place = characters[at] === '\\' ? at + 1 : at;
  const character = characters[place];
  return character === undefined ? undefined : { character, next: place + 1 };
}

/**
 * Whether a path is hidden by itself; a path below a hidden directory is hidden with it, which is for the caller to see.
 * `names` are the names of the path from the directory of the ignore file on. The last pattern that matches decides. What
 * it takes is taken from `effort`; once that is used up the answer means nothing.
 */
export function isIgnored(
  patterns: IgnorePatterns,
  names: readonly string[],
  isDirectory: boolean,
  effort: Effort = { left: Infinity },
): boolean {
  const matches = ({ segments }: IgnoreRule): boolean =>
    (effort.left -= 1) < 0 || matchesPath(segments, names, effort);
  const rule = patterns.rules.findLast((one) => (isDirectory || !one.directoriesOnly) && matches(one));
  return rule !== undefined && !rule.includes;
}

/** `**` stands for any number of names; last in a pattern for at least one, because it means what is inside. */
function matchesPath(segments: IgnoreRule['segments'], names: readonly string[], effort: Effort): boolean {
  const pattern = segments.at(-1) === '**' ? [...segments, ANY_NAME] : segments;
  const [first, name] = pattern;
  // Most patterns are one name at any depth, which is the last of a path.
  if (pattern.length === 2 && first === '**' && name !== undefined && name !== '**')
    return matchesName(name, names.at(-1) ?? '', effort);
  const isMany = (one: (typeof pattern)[number]): boolean => one === '**';
  return wildcard(
    { pattern, items: names, isMany, effort },
    (one, name) => one !== '**' && matchesName(one, name, effort),
  );
}

const ANY_NAME = ['many'] as const;

function matchesName(pattern: readonly Token[], name: string, effort: Effort): boolean {
  const isMany = (one: Token): boolean => one === 'many';
  return wildcard(
    { pattern, items: Array.from(name), isMany, effort },
    (one, character) => one === 'one' || (typeof one === 'function' && one(character, effort)),
  );
}

interface Matching<Part, Item> {
  readonly pattern: readonly Part[];
  readonly items: readonly Item[];
  readonly isMany: (part: Part) => boolean;
  readonly effort: Effort;
}

/** Whether the pattern matches all items, where some of its parts stand for any number of them. Goes back to the last of those only. */
function wildcard<Part, Item>(
  { pattern, items, isMany, effort }: Matching<Part, Item>,
  matches: (part: Part, item: Item) => boolean,
): boolean {
  let part = 0;
  let item = 0;
  let retry: { part: number; item: number } | undefined;
  while (item < items.length) {
    effort.left -= 1;
    if (effort.left < 0) return false;
    const wanted = pattern[part];
    const found = items[item];
    if (part < pattern.length && wanted !== undefined && isMany(wanted)) {
      retry = { part: part + 1, item };
      part += 1;
    } else if (
      part < pattern.length &&
      wanted !== undefined &&
      found !== undefined &&
      matches(wanted, found)
    ) {
      part += 1;
      item += 1;
    } else if (retry) {
      retry = { part: retry.part, item: retry.item + 1 };
      ({ part, item } = retry);
    } else return false;
  }
  return pattern.slice(part).every(isMany);
}
