import type { Context } from '../cli/context.ts';
import { loadAppConfig } from '../config/app-config.ts';
import type { CatalogSource } from './catalog-source.ts';
import { openCatalog } from './open-catalog.ts';

/** The catalogue this user has chosen. */
export async function catalogOf({ places, program }: Context): Promise<CatalogSource> {
  return openCatalog({ config: await loadAppConfig(places), version: program.version });
}
