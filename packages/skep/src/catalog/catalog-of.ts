import type { Places } from '@skep/core/files/places.ts';
import { loadAppConfig } from '../config/app-config.ts';
import type { CatalogSource } from './catalog-source.ts';
import { openCatalog } from './open-catalog.ts';

interface CatalogUser {
  readonly places: Places;
  readonly program: { readonly version: string };
}

/** The catalogue this user has chosen. */
export async function catalogOf({ places, program }: CatalogUser): Promise<CatalogSource> {
  return openCatalog({ config: await loadAppConfig(places), version: program.version });
}
