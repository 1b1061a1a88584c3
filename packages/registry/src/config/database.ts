import { resolve } from 'node:path';
import type { Host } from '@skep/core/command/host.ts';
import { z } from 'zod';
import type { StorePlace } from '../store/open-store.ts';
import { MAX_CONNECTIONS, SSL_MODES, type PostgresSettings } from '../store/postgres/settings.ts';
import { count } from '../shape/limits.ts';
import { duration, nonEmpty } from '../shape/texts.ts';
import { rdsToken } from '../store/postgres/rds-token.ts';

export const databaseShape = z
  .strictObject({
    host: nonEmpty,
    port: count(1, 65_535),
    database: nonEmpty,
    user: nonEmpty,
    migrationUser: nonEmpty.optional().describe('owns the tables; `user` when absent'),
    password: z.string().optional().describe('better in a variable or a password file (`PGPASSFILE`)'),
    migrationPassword: z
      .string()
      .optional()
      .describe('of migrationUser; `password` when absent and the users are the same'),
    sslMode: z
      .enum(SSL_MODES, { error: `must be one of ${SSL_MODES.join(', ')}` })
      .default('require')
      .describe('`require` encrypts and does not prove who the server is'),
    sslRootCert: nonEmpty.optional().describe('PEM file, from the folder of the configuration'),
    maxOpenConns: count(2).default(MAX_CONNECTIONS).describe('most connections'),
    maxIdleConns: count(0).default(0).describe('connections that stay open'),
    connMaxLifetime: duration().optional().describe('of one connection; unlimited when absent'),
    maxMetaSize: count(1).optional().describe('the same as limits.maxMetaSize, which it counts before'),
    dynamicAuth: z
      .strictObject({
        awsRdsIam: z
          .strictObject({ region: nonEmpty.describe('of the database; `detect` asks the instance metadata') })
          .describe('IAM authentication of Amazon RDS; `host` must be the name that RDS gave the endpoint'),
      })
      .optional()
      .describe('a fresh token for each connection in place of a password; `verify-full` is recommended'),
  })
  .superRefine(({ dynamicAuth, sslMode, password, migrationPassword }, context) => {
    if (dynamicAuth === undefined) return;
    if (sslMode === 'disable' || sslMode === 'prefer') {
      const message = `must be require, verify-ca or verify-full with database.dynamicAuth: no token may travel in the clear`;
      context.addIssue({ code: 'custom', path: ['sslMode'], message });
    }
    if ((password ?? migrationPassword) === undefined) return;
    const member = password === undefined ? 'migrationPassword' : 'password';
    const message = `database.${member} and database.dynamicAuth are mutually exclusive`;
    context.addIssue({ code: 'custom', path: [member], message });
  });

/** Relative paths start at the folder of the configuration file. */
export function resolvedDatabase(shape: z.infer<typeof databaseShape>, directory: string): PostgresSettings {
  const { sslRootCert, dynamicAuth, ...rest } = shape;
  // A limit, which stands with the others.
  delete rest.maxMetaSize;
  const certificate = sslRootCert === undefined ? {} : { sslRootCert: resolve(directory, sslRootCert) };
  return { ...rest, ...dynamicAuth, ...certificate };
}

/** Where the store is: a file of this machine, or a database in its place. */
export type StoreConfig =
  | { readonly storage: { readonly path: string }; readonly database?: never }
  | { readonly database: PostgresSettings; readonly storage?: never };

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
