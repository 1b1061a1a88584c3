import type { Host } from '@skep/core/command/host.ts';
import type { StorePlace } from '../store/open-store.ts';
import { rdsToken } from '../store/postgres/rds-token.ts';
import type { StoreConfig } from './config.ts';

/** What the configuration and this machine say about where the store is. */
export function storePlace(
  { database, storage }: StoreConfig,
  { env, home, platform }: Pick<Host, 'env' | 'home' | 'platform'>,
): StorePlace {
  if (database === undefined) return { kind: 'sqlite', path: storage.path };
  const { awsRdsIam } = database;
  const metadata = { endpoint: env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] };
  return {
    kind: 'postgres',
    ...(awsRdsIam === undefined ? {} : { token: rdsToken(awsRdsIam, metadata) }),
    settings: database,
    passwordFile: { named: env['PGPASSFILE'], homeDirectory: home, platform },
    applicationName: 'skep-registry',
  };
}
