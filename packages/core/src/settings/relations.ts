import { SkepError } from '../errors/skep-error.ts';
import type { Field, Settings } from './field.ts';

/** Fails with `usage/conflict` when two settings that exclude each other come from the same place. */
export function checkExcludes(rows: readonly Field[], settings: Settings): void {
  for (const row of rows) {
    const own = settings.get(row.name);
    const rival = rows.find(
      (other) =>
        own !== undefined &&
        row.excludes?.includes(other.name) === true &&
        settings.get(other.name)?.origin === own.origin,
    );
    if (rival !== undefined) {
      throw new SkepError('usage/conflict', {
        message: `${labelOf(row)} cannot be used together with ${labelOf(rival)}`,
      });
    }
  }
}

/** Fails with `usage/conflict` when a setting was given without one that it needs. */
export function checkNeeds(rows: readonly Field[], settings: Settings): void {
  for (const row of rows) {
    const origin = settings.get(row.name)?.origin;
    if (origin === undefined || origin === 'default') continue;
    const missing = rows.find(
      (other) => row.needs?.includes(other.name) === true && !settings.has(other.name),
    );
    if (missing !== undefined) {
      throw new SkepError('usage/conflict', {
        message: `${labelOf(row)} needs ${labelOf(missing)}`,
        hint: `add ${labelOf(missing)}`,
      });
    }
  }
}

/** Fails with `usage/missing-argument` when a row that is required has no value. */
export function checkRequired(rows: readonly Field[], settings: Settings): void {
  const missing = rows.find((row) => row.required === true && !settings.has(row.name));
  if (missing === undefined) return;
  throw new SkepError('usage/missing-argument', { message: `the flag "${labelOf(missing)}" is missing` });
}

/** What people call a setting: its flag, else its key, else its variable. */
export function labelOf(row: Field): string {
  return row.flag === undefined ? (row.key ?? row.env ?? row.name) : `--${row.flag}`;
}
