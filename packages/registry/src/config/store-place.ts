import type { Host } from '../host.ts';
import type { StorePlace } from '../store/open-store.ts';
import type { RegistryConfig } from './config.ts';

/** What the configuration and this machine say about where the store is. */
export function storePlace(
  { database, storage }: Pick<RegistryConfig, 'database' | 'storage'>,
  { env, home, platform }: Pick<Host, 'env' | 'home' | 'platform'>,
): StorePlace {
  if (database === undefined) return { kind: 'sqlite', path: storage.path };
  return {
    kind: 'postgres',
    settings: database.postgres,
    passwordFile: { named: env['PGPASSFILE'], homeDirectory: home, platform },
    applicationName: 'skep-registry',
  };
}
