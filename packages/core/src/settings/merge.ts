import { SkepError } from '../errors/skep-error.ts';
import type { Field, Setting, Settings } from './field.ts';

/**
 * One setting per row from layers in falling precedence (flags, environment, catalogue, file, application), then the
 * row's default. The first layer that has a value wins whole: lists of two layers are not joined. Each value keeps its
 * origin, and what it was taken instead of; a layer may be merged itself. Fails with `usage/conflict` when settings
 * exclude or need each other.
 */
export function mergeSettings(rows: readonly Field[], layers: readonly Settings[]): Settings {
  for (const layer of layers) checkExcludes(rows, layer);
  const merged = new Map<string, Setting>();
  for (const row of rows) {
    const [found, ...over] = layers.flatMap((layer) => given(layer.get(row.name)));
    if (found !== undefined) merged.set(row.name, over.length === 0 ? found : { ...found, over });
    else if (row.default !== undefined) merged.set(row.name, { value: row.default, origin: 'default' });
  }
  checkNeeds(rows, merged);
  return merged;
}

/** A setting with those it stands for, the strongest first; a default is given by nobody. */
function given(setting: Setting | undefined): readonly Setting[] {
  if (setting === undefined || setting.origin === 'default') return [];
  const { over = [], ...alone } = setting;
  return [alone, ...over];
}

/** Fails with `usage/conflict` when settings from the same place exclude each other. */
export function checkExcludes(rows: readonly Field[], settings: Settings): void {
  for (const row of rows) {
    const own = row.excludes && settings.get(row.name);
    const rival = own && row.excludes?.find((name) => settings.get(name)?.origin === own.origin);
    if (rival === undefined) continue;
    throw new SkepError('usage/conflict', {
      message: `${labelOf(row)} cannot be used together with ${labelIn(rows, rival)}`,
    });
  }
}

/** Fails with `usage/conflict` when a setting was given without one that it needs. */
function checkNeeds(rows: readonly Field[], settings: Settings): void {
  for (const row of rows) {
    const origin = settings.get(row.name)?.origin;
    if (origin === undefined || origin === 'default') continue;
    const missing = row.needs?.find((name) => !settings.has(name));
    if (missing === undefined) continue;
    const label = labelIn(rows, missing);
    throw new SkepError('usage/conflict', {
      message: `${labelOf(row)} needs ${label}`,
      hint: `add ${label}`,
    });
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

/** Of the row of that name, which `defineSettings` has seen. */
function labelIn(rows: readonly Field[], name: string): string {
  const row = rows.find((one) => one.name === name);
  return row === undefined ? name : labelOf(row);
}
