/** One decision record, as its file holds it. */
export interface Decision {
  readonly file: string;
  /** Four digits. */
  readonly number: string;
  readonly title: string;
  /** Without the heading. */
  readonly words: number;
}

const MAX_WORDS = 150;
/** The table of dependencies has a line for each, however many there are. */
const UNBOUNDED = new Set(['0003']);

/** Reads a record; undefined where the heading is not the number of the file's name and a title. */
export function readDecision(file: string, text: string): Decision | undefined {
  const number = /^(\d{4})-[a-z0-9-]+\.md$/.exec(file)?.[1];
  const [heading = '', ...rest] = text.split('\n');
  if (number === undefined || !heading.startsWith(`# ${number} `)) return undefined;
  const words = rest
    .join(' ')
    .split(/\s+/)
    .filter((word) => word !== '').length;
  return { file, number, title: heading.slice(`# ${number} `.length), words };
}

/** What decision 0001 asks of the records: a number that no other has, and at most 150 words. */
export function decisionFaults(decisions: readonly Decision[]): readonly string[] {
  return decisions.flatMap(({ file, number, words }) => [
    ...(decisions.some((other) => other.number === number && other.file !== file)
      ? [`${file}: another record has the number ${number}`]
      : []),
    ...(words > MAX_WORDS && !UNBOUNDED.has(number)
      ? [`${file}: ${words} words, at most ${MAX_WORDS}; split it, or say less`]
      : []),
  ]);
}

/** The list of all records, a title per line. */
export function decisionIndex(decisions: readonly Decision[]): string {
  const lines = decisions
    .toSorted((a, b) => a.file.localeCompare(b.file))
    .map(({ file, number, title }) => `* [${number}](${file}) ${title}`);
  return `# Decisions\n\nWhat was decided, why, and what it costs (0001 says how records are kept).\n\n${lines.join('\n')}\n`;
}
