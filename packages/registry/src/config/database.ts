import { resolve } from 'node:path';
import { z } from 'zod';
import { type PostgresSettings, SSL_MODES } from '../store/postgres-settings.ts';
import { duration, durationOf, nonEmpty } from './texts.ts';

/** A whole number of at least `least`; as text too, because variables of the environment override it. */
function count(least: number, most = Number.MAX_SAFE_INTEGER) {
  const message = `must be a whole number from ${String(least)}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${String(most)}`}`;
  return z
    .union(
      [
        z.number(),
        z
          .string()
          .regex(/^\d{1,9}$/, message)
          .transform(Number),
      ],
      { error: message },
    )
    .refine((value) => Number.isInteger(value) && value >= least && value <= most, message);
}

const notAvailable = z
  .unknown()
  .superRefine((_, context) =>
    context.addIssue({ code: 'custom', message: 'signing in with a cloud identity is not available yet' }),
  )
  .optional();

/** Specification §1.3.6. */
export const databaseShape = z.strictObject({
  host: nonEmpty,
  port: count(1, 65_535),
  database: nonEmpty,
  user: nonEmpty,
  migrationUser: nonEmpty.optional(),
  password: z.string().optional(),
  migrationPassword: z.string().optional(),
  sslMode: z.enum(SSL_MODES, { error: `must be one of ${SSL_MODES.join(', ')}` }).optional(),
  sslRootCert: nonEmpty.optional(),
  maxOpenConns: count(2).optional(),
  maxIdleConns: count(0).optional(),
  connMaxLifetime: duration().optional(),
  maxMetaSize: count(1).optional(),
  dynamicAuth: notAvailable,
});

export interface DatabaseConfig {
  readonly postgres: PostgresSettings;
  /** Bytes of publisher `_meta` that one version may have. */
  readonly maxMetaSize: number;
}

const MAX_META_SIZE = 262_144;

/** Relative paths start at the folder of the configuration file. */
export function resolvedDatabase(
  shape: z.infer<typeof databaseShape> | undefined,
  directory: string,
): DatabaseConfig | undefined {
  if (shape === undefined) return undefined;
  const { connMaxLifetime, sslRootCert, sslMode = 'require', maxMetaSize, dynamicAuth: _, ...rest } = shape;
  const lifetime = durationOf(connMaxLifetime ?? '');
  return {
    maxMetaSize: maxMetaSize ?? MAX_META_SIZE,
    postgres: {
      ...present(rest),
      host: rest.host,
      port: rest.port,
      database: rest.database,
      user: rest.user,
      sslMode,
      ...(lifetime === undefined ? {} : { connMaxLifetime: lifetime }),
      ...(sslRootCert === undefined ? {} : { sslRootCert: resolve(directory, sslRootCert) }),
    },
  };
}

type Present<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Without the members that are undefined, which is not the same as absent. */
function present<T extends object>(value: T): Present<T> {
  const held: Present<T> = {};
  for (const key in value) {
    const item = value[key];
    if (item !== undefined) Object.assign(held, { [key]: item });
  }
  return held;
}
