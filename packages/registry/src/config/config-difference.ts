import { isDeepStrictEqual } from 'node:util';
import type { NameChanges } from '../store/desired-state.ts';
import type { RegistryConfig } from './load.ts';

/** What a reload changed, in names: values may be secret. */
export interface ConfigDifference {
  /** Keys of the configuration as the program holds it. */
  readonly changed: readonly string[];
  readonly sources: NameChanges;
  readonly registries: NameChanges;
}

export function configDifference(before: RegistryConfig, after: RegistryConfig): ConfigDifference {
  const isOther = (key: string): boolean =>
    !isDeepStrictEqual(Reflect.get(before, key), Reflect.get(after, key));
  return {
    changed: Object.keys({ ...before, ...after }).filter(isOther),
    sources: nameChanges(before.sources, after.sources),
    registries: nameChanges(before.registries, after.registries),
  };
}

type Named = readonly { readonly name: string }[];

function nameChanges(before: Named, after: Named): NameChanges {
  const old = new Map(before.map((row) => [row.name, row]));
  const now = new Map(after.map((row) => [row.name, row]));
  const names = [...now.keys()];
  return {
    created: names.filter((name) => !old.has(name)),
    updated: names.filter((name) => old.has(name) && !isDeepStrictEqual(old.get(name), now.get(name))),
    deleted: [...old.keys()].filter((name) => !now.has(name)),
  };
}
