/** A line of the program's log or audit. */
export interface Line {
  readonly type?: string;
  readonly msg?: string;
  readonly [member: string]: unknown;
}

/** Every line of the text, each one JSON. */
export function linesOf(text: string): Line[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
