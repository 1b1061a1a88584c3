import type { Field, Setting, Settings } from './field.ts';
import { checkExcludes, checkNeeds } from './relations.ts';

/**
 * One setting per row from layers in falling precedence (flags, environment, file), then the row's default. The first
 * layer that has a value wins whole: lists of two layers are not joined. Each value keeps its origin. Fails with
 * `usage/conflict` when settings exclude or need each other.
 */
export function mergeSettings(rows: readonly Field[], layers: readonly Settings[]): Settings {
  for (const layer of layers) checkExcludes(rows, layer);
  const merged = new Map<string, Setting>();
  for (const row of rows) {
    const found = layers.map((layer) => layer.get(row.name)).find((setting) => setting !== undefined);
    if (found !== undefined) merged.set(row.name, found);
    else if (row.default !== undefined) merged.set(row.name, { value: row.default, origin: 'default' });
  }
  checkNeeds(rows, merged);
  return merged;
}
