import { editDistance } from '../settings/did-you-mean.ts';
import type { ServerEntry } from './entry.ts';
import { splitName } from './entry-name.ts';
import { extensionSummary } from './extension-summary.ts';

/** Where a query was found in a server; the smaller, the better (decision 0235). */
const GRADE = {
  fullName: 0,
  shortName: 1,
  /** But for spaces and dashes. */
  sameShortName: 2,
  /** All that the short name says beside words which any server may have, or the name of the publisher. */
  meaning: 3,
  nameWord: 4,
  nameStart: 5,
  nameInside: 6,
  titleWord: 7,
  titleInside: 8,
  tag: 9,
  descriptionWord: 10,
  descriptionStart: 11,
  typo: 12,
} as const;

/** Words that the names of servers have whatever they do. */
const FILLERS = new Set(['mcp', 'server', 'servers']);
/** Whoever writes more into a query or an entry is not read to the end, so that hostile texts cost nobody time. */
const MAX_QUERY = 200;
const MAX_QUERY_WORDS = 8;
const MAX_TITLE = 200;
const MAX_TEXT = 2000;
const MAX_TAGS = 50;
const MAX_WORD = 64;
/** Words of a server in which typos are looked for. */
const MAX_CANDIDATES = 100;
const MIN_INSIDE = 3;
const ASCII = /^[\x20-\x7E]*$/;

interface Query {
  readonly text: string;
  readonly words: readonly string[];
  readonly joined: string;
  /** With a dot or slash it may mean the namespace too. */
  readonly namesNamespace: boolean;
}

/** What of a server is searched, as it stands there. */
export interface Searchable {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly status?: string;
  readonly tier?: string;
}

/** Compared member by member; the name makes it a total order. */
interface Rank<Row> {
  readonly row: Row;
  readonly name: string;
  readonly order: readonly number[];
}

/**
 * The servers that answer a query, best first: by the exact name, then by a part of the short name, the title, a tag and the
 * description. Every word of the query must be found; where no server has them all, small typos in names, titles and tags
 * are forgiven. The namespace counts only for a query with a dot or slash. Pure; one entry for each name is expected, and
 * their order does not matter. A query without words is answered with all, by name.
 */
export function rankServers(entries: readonly ServerEntry[], query: string): ServerEntry[] {
  return rankRows(entries, query, searchableOf);
}

/** As `rankServers`, for whatever `read` finds the texts of. */
export function rankRows<Row>(rows: readonly Row[], query: string, read: (row: Row) => Searchable): Row[] {
  const wanted = readQuery(query);
  const rankAll = (forgiving: boolean): Rank<Row>[] =>
    rows.flatMap((row) => {
      const searchable = read(row);
      const order = orderOf(readServer(searchable), wanted, forgiving);
      return order === undefined ? [] : { row, name: searchable.name, order };
    });
  const ranked = rankAll(false);
  const found = ranked.length > 0 ? ranked : rankAll(true);
  return found.toSorted(compareRanks).map(({ row }) => row);
}

/** What of an entry is searched; no more of each text than is read. */
export function searchableOf({ name, document }: ServerEntry): Searchable {
  const { tags, status, tier } = extensionSummary(document);
  return {
    name,
    ...(document.title ? { title: document.title.slice(0, MAX_TITLE) } : {}),
    description: document.description.slice(0, MAX_TEXT),
    tags: tags.slice(0, MAX_TAGS).map((tag) => tag.slice(0, MAX_WORD)),
    ...(status === undefined ? {} : { status }),
    ...(tier === undefined ? {} : { tier }),
  };
}

function compareRanks(a: Rank<unknown>, b: Rank<unknown>): number {
  for (const [at, value] of a.order.entries()) {
    const difference = value - (b.order[at] ?? 0);
    if (difference !== 0) return difference;
  }
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}

function readQuery(query: string): Query {
  const text = foldedTo(MAX_QUERY, query).trim();
  const all = wordsOf(text).slice(0, MAX_QUERY_WORDS);
  const telling = withoutFillers(all);
  const words = telling.length > 0 ? telling : all;
  return { text, words, joined: words.join(''), namesNamespace: /[./]/.test(text) };
}

/** Undefined where the server does not answer the query. */
function orderOf(server: Searched, query: Query, forgiving: boolean): readonly number[] | undefined {
  const inWords = gradesOfWords(query, server, forgiving);
  const worst = Math.max(...inWords, query.words.length === 0 ? GRADE.typo : 0);
  const whole = gradeOfWhole(query, server);
  if (worst === Infinity && whole === Infinity) return undefined;
  const isPublisher = publishersOf(server.namespace).includes(query.joined);
  const grade = Math.min(whole, isPublisher && worst < Infinity ? GRADE.meaning : worst);
  const isWhole = whole <= worst || grade <= GRADE.meaning;
  const spread = isWhole ? 0 : inWords.reduce((sum, one) => sum + one, 0);
  return [
    grade,
    spread,
    isPublisher ? 0 : 1,
    server.status === 'deprecated' ? 1 : 0,
    server.tier?.toLowerCase() === 'official' ? 0 : 1,
    withoutFillers(server.shortWords).length,
  ];
}

/** Where each word is found at best, up to the first that is not found. */
function gradesOfWords({ words }: Query, server: Searched, forgiving: boolean): readonly number[] {
  const grades: number[] = [];
  for (const word of words) {
    const grade = gradeOfWord(word, server, forgiving);
    grades.push(grade);
    if (grade === Infinity) break;
  }
  return grades;
}

/** What of an entry is searched; all texts are folded. */
type Searched = ReturnType<typeof readServer>;

function readServer({ name, title = '', description, tags, status, tier }: Searchable) {
  const full = name.toLowerCase();
  const { namespace = '', name: short } = splitName(full);
  const shortWords = wordsOf(short);
  return {
    full,
    namespace,
    short,
    shortWords,
    shortJoined: shortWords.join(''),
    titleWords: wordsOf(foldedTo(MAX_TITLE, title)),
    tags: tags.slice(0, MAX_TAGS).map((tag) => foldedTo(MAX_WORD, tag)),
    description: foldedTo(MAX_TEXT, description),
    status,
    tier,
  };
}

/** How the whole query meets the name. */
function gradeOfWhole(query: Query, { full, short, shortWords, shortJoined }: Searched): number {
  if (query.text === full) return GRADE.fullName;
  if (query.text === short) return GRADE.shortName;
  if (query.joined !== '') {
    if (query.joined === shortJoined) return GRADE.sameShortName;
    if (query.joined === withoutFillers(shortWords).join('')) return GRADE.meaning;
  }
  if (!query.namesNamespace || !full.includes(query.text)) return Infinity;
  return full.startsWith(query.text) ? GRADE.nameStart : GRADE.nameInside;
}

/** Where a word is found at best. */
function gradeOfWord(word: string, server: Searched, forgiving: boolean): number {
  const { shortWords, shortJoined, titleWords, tags, description } = server;
  // Shorter parts would be found inside of almost everything; not every script has spaces between words.
  const mayBeInside = word.length >= MIN_INSIDE || !ASCII.test(word);
  if (shortJoined.includes(word)) {
    if (shortWords.includes(word)) return GRADE.nameWord;
    if (shortWords.some((one) => one.startsWith(word))) return GRADE.nameStart;
    if (mayBeInside) return GRADE.nameInside;
  }
  if (titleWords.includes(word)) return GRADE.titleWord;
  if (mayBeInside && titleWords.join('').includes(word)) return GRADE.titleInside;
  if (tags.some((tag) => tag.includes(word) && wordsOf(tag).includes(word))) return GRADE.tag;
  if (description.includes(word)) {
    const words = wordsOf(description);
    if (words.includes(word)) return GRADE.descriptionWord;
    if (!ASCII.test(word) || words.some((one) => one.startsWith(word))) return GRADE.descriptionStart;
  }
  if (!forgiving) return Infinity;
  const candidates = new Set([...shortWords, ...titleWords, ...tags.flatMap(wordsOf)]);
  const isMeant = candidates
    .values()
    .take(MAX_CANDIDATES)
    .some((one) => isTypoOf(word, one));
  return isMeant ? GRADE.typo : Infinity;
}

/** One slip in a word of four letters, two in a word of eight. Neighbours in the wrong order are one. */
function isTypoOf(typed: string, word: string): boolean {
  const allowed = Math.min(2, Math.floor(typed.length / 4));
  if (allowed === 0 || word.length > MAX_WORD || Math.abs(typed.length - word.length) > allowed) return false;
  return editDistance(typed, word) <= allowed;
}

/**
 * Who publishes under a namespace, as people call them: `com.stripe` is `stripe`, `io.github.upstash` is `upstash`. That a
 * registry gives a namespace to its owner alone is what makes it worth something.
 */
function publishersOf(namespace: string): readonly string[] {
  const hosted = /^(?:io|com)\.(?:github|gitlab)\.(.+)$/.exec(namespace)?.[1];
  const labels = hosted === undefined ? namespace.split('.').slice(1) : [hosted];
  return withoutFillers(labels.map((label) => wordsOf(label).join('')));
}

function withoutFillers(words: readonly string[]): readonly string[] {
  return words.filter((word) => !FILLERS.has(word));
}

/** Folding makes many characters of some. */
function foldedTo(length: number, text: string): string {
  return folded(text.slice(0, length)).slice(0, length);
}

function folded(text: string): string {
  return (ASCII.test(text) ? text : text.normalize('NFKC')).toLowerCase();
}

/** Of folded text. */
function wordsOf(text: string): readonly string[] {
  // Says the same of ASCII, in a fraction of the time.
  return text.match(ASCII.test(text) ? /[a-z0-9]+/g : /[\p{L}\p{N}]+/gu) ?? [];
}
