/** Where in the configuration: member names and list positions from the top. */
export type ConfigPath = readonly PropertyKey[];

/** One thing that is wrong. `at: 'key'` points at the last member's name instead of its value. */
export interface Problem {
  readonly path: ConfigPath;
  readonly message: string;
  readonly at?: 'key';
}

/** `sources[0].file.path`; the empty text for the whole document. */
export function pathText(path: ConfigPath): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');
}

/** All problems in one line, separated by semicolons. */
export function problemsText(problems: readonly Problem[]): string {
  const texts = problems.map(({ path, message }) =>
    [pathText(path), message].filter((part) => part !== '').join(': '),
  );
  return texts.join('; ');
}
