import type { Field, Setting, Settings } from './field.ts';
import { checkExcludes, checkNeeds } from './relations.ts';

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

/** The setting of a layer with those it stands for there, the strongest first; a default is not given by anybody. */
function given(setting: Setting | undefined): readonly Setting[] {
  if (setting === undefined || setting.origin === 'default') return [];
  const { over = [], ...alone } = setting;
  return [alone, ...over];
}
