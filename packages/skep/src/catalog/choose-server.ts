import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { rankServers } from '@skep/core/catalog/rank.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Requirement } from '@skep/core/catalog/run-plan/requirement.ts';
import type { CatalogSource } from './catalog-source.ts';

/** Offered where a name is not there at most. */
const MAX_OFFERED = 3;

interface Asking {
  /** Asks the person; absent where nobody can be asked. */
  readonly ask?: (requirement: Requirement) => Promise<string>;
  readonly signal: AbortSignal;
}

/** A server, and a name that means it and no other. */
export interface Chosen {
  readonly entry: ServerEntry;
  readonly callable: string;
}

/** As `findServer`; fails with `target/not-found` naming the nearest. */
export async function chooseServer(catalog: CatalogSource, name: string, asking: Asking): Promise<Chosen> {
  return (await findServer(catalog, name, asking)) ?? (await refuseUnknown(catalog, name, asking));
}

/**
 * The server that a name means, undefined where there is none. Where several end in it, the person is asked; where nobody
 * can be asked, it fails with `catalog/ambiguous-name` and the list.
 */
export async function findServer(
  catalog: CatalogSource,
  name: string,
  { ask, signal }: Asking,
): Promise<Chosen | undefined> {
  const find = async (callable: string): Promise<Chosen | undefined> => {
    const entry = await catalog.find(callable, signal);
    return entry && { entry, callable };
  };
  try {
    return await find(name);
  } catch (error) {
    const names = hasCode(error, 'catalog/ambiguous-name') ? namesIn(error.detail) : [];
    if (ask === undefined || names.length === 0) throw error;
    return find(await ask({ name: `Which "${name}"?`, required: true, secret: false, choices: names }));
  }
}

/** Fails with `target/not-found`, naming the nearest. */
export async function refuseUnknown(
  catalog: CatalogSource,
  name: string,
  { where = 'the catalogue', signal }: { readonly where?: string; readonly signal: AbortSignal },
): Promise<never> {
  const near = rankServers(await catalog.list({ search: name, signal }), name);
  const names = near.slice(0, MAX_OFFERED).map((entry) => entry.name);
  throw new SkepError('target/not-found', {
    message: `server "${name}" not found in ${where}`,
    ...(names.length === 0 ? {} : { hint: `did you mean ${names.join(', or ')}?` }),
  });
}

function namesIn(detail: unknown): readonly string[] {
  const names: unknown =
    typeof detail === 'object' && detail !== null && 'names' in detail ? detail.names : [];
  return Array.isArray(names) ? names.filter((one) => typeof one === 'string') : [];
}
