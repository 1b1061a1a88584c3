import { hasCode } from '../errors/skep-error.ts';
import type { Field, Setting, Settings } from './field.ts';
import { combine, parseValue } from './parse-value.ts';

/**
 * The settings whose variable is set and not empty, origin `env`. `list` and `pairs` take one item per line, the other
 * kinds the notation of the flag. Fails with `usage/invalid-value` naming the variable; what is wrong with that of a lenient
 * row is told to `warn` instead.
 */
export function fromEnv(
  rows: readonly Field[],
  env: Readonly<Record<string, string | undefined>>,
  warn: (line: string) => void = () => {},
): Settings {
  const settings = new Map<string, Setting>();
  for (const row of rows) {
    const text = row.env === undefined || row.notYet === true ? undefined : env[row.env];
    if (text === undefined || text === '') continue;
    try {
      const setting = read(row, text);
      if (setting !== undefined) settings.set(row.name, setting);
    } catch (error) {
      if (row.lenient !== true || !hasCode(error, 'usage/invalid-value')) throw error;
      warn(`${error.message}; it counts as unset`);
    }
  }
  return settings;
}

function read(row: Field, text: string): Setting | undefined {
  const where = { label: `the environment variable ${row.env ?? ''}`, code: 'usage/invalid-value' } as const;
  const items =
    row.kind === 'list' || row.kind === 'pairs' ? text.split('\n').filter((line) => line !== '') : [text];
  const [first, ...rest] = items.map((item) => parseValue(row, item, where));
  return first === undefined ? undefined : { value: combine(row, [first, ...rest]), origin: 'env' };
}
