import { isDeepStrictEqual } from 'node:util';
import type { DesiredState } from '../store/desired-state.ts';
import type { NamedSource, StoredSource } from '../store/rows.ts';
import { withoutUrlSecrets } from './url-secrets.ts';

/** What the store gets to know: addresses without their secrets, which stay in the file. */
export function storable({ sources, registries }: DesiredState): DesiredState {
  return {
    sources: sources.map((source) => ({ ...source, config: withoutUrlSecrets(source.config) })),
    registries,
  };
}

/** Sources as the configuration file has them, with the secrets of their addresses. */
export class GivenSources {
  #sources: readonly NamedSource[];
  #before: readonly NamedSource[];

  constructor(sources: readonly NamedSource[]) {
    this.#sources = sources;
    this.#before = sources;
  }

  /** The source with the address as the file has it, where that is what the store's row was made from. */
  of(stored: StoredSource): StoredSource {
    const config = this.#sources.find(({ name }) => name === stored.name)?.config;
    const isSame = config !== undefined && withoutUrlSecrets(config) === stored.config;
    return stored.creationType === 'CONFIG' && isSame ? { ...stored, config } : stored;
  }

  /** Takes over a new file, before the store does: a source may be opened as soon as that has it. Whether secrets differ. */
  replace(sources: readonly NamedSource[]): boolean {
    this.#before = this.#sources;
    this.#sources = sources;
    return !isDeepStrictEqual(secretsOf(this.#before), secretsOf(sources));
  }

  /** For a store that refuses the new file. */
  orBack(): (reason: unknown) => never {
    return (reason) => {
      this.#sources = this.#before;
      throw reason;
    };
  }
}

function secretsOf(sources: readonly NamedSource[]): readonly string[] {
  return sources.flatMap(({ config }) => (withoutUrlSecrets(config) === config ? [] : config));
}
