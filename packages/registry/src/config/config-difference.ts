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
  const values = new Map<string, unknown>(Object.entries(before));
  const next = new Map<string, unknown>(Object.entries(after));
  const keys = new Set([...values.keys(), ...next.keys()]);
  return {
    changed: [...keys].filter((key) => !isDeepStrictEqual(values.get(key), next.get(key))),
    sources: nameChanges(before.sources, after.sources),
    registries: nameChanges(before.registries, after.registries),
  };
}

type Named = readonly { readonly name: string }[];

function nameChanges(before: Named, after: Named): NameChanges {
  const [old, now] = [before, after].map((rows) => new Map(rows.map((row) => [row.name, row])));
  const isIn = (rows: typeof old) => (name: string) => rows?.has(name) === true;
  const names = after.map(({ name }) => name);
  return {
    created: names.filter((name) => !isIn(old)(name)),
    updated: names.filter((name) => isIn(old)(name) && !isDeepStrictEqual(old?.get(name), now?.get(name))),
    deleted: before.map(({ name }) => name).filter((name) => !isIn(now)(name)),
  };
}
