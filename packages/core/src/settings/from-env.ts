import type { Field, Setting, Settings } from './field.ts';
import { combine, parseValue } from './parse-value.ts';

/**
 * The settings whose variable is set and not empty, origin `env`. `list` and `pairs` take one item per line, the other
 * kinds the notation of the flag. Fails with `usage/invalid-value` naming the variable.
 */
export function fromEnv(rows: readonly Field[], env: Readonly<Record<string, string | undefined>>): Settings {
  const settings = new Map<string, Setting>();
  for (const row of rows) {
    const text = row.env === undefined || row.notYet === true ? undefined : env[row.env];
    if (row.env === undefined || text === undefined || text === '') continue;
    const where = { label: `the environment variable ${row.env}`, code: 'usage/invalid-value' } as const;
    const items =
      row.kind === 'list' || row.kind === 'pairs' ? text.split('\n').filter((line) => line !== '') : [text];
    const [first, ...rest] = items.map((item) => parseValue(row, item, where));
    if (first === undefined) continue;
    settings.set(row.name, { value: combine(row, [first, ...rest]), origin: 'env' });
  }
  return settings;
}
