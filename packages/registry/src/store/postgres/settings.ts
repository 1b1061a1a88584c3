import { isLoopback } from '@skep/core/fetch/loopback.ts';

/** How far TLS is used and what it proves (libpq, "SSL Mode Descriptions"). */
export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
export type SslMode = (typeof SSL_MODES)[number];

/** `database` of the configuration (docs/behaviour/registry.md#database). */
export interface PostgresSettings {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** Owns the tables; the same as `user` where it is not given. */
  readonly migrationUser?: string | undefined;
  /** From the configuration or the environment. Where it is absent the password file is asked. */
  readonly password?: string | undefined;
  readonly migrationPassword?: string | undefined;
  /** Tokens in place of both passwords, for a database in this region; `detect` takes the region of this machine. */
  readonly awsRdsIam?: { readonly region: string };
  readonly sslMode: SslMode;
  /** PEM file with the authorities to trust in the two verifying modes; the system's where it is absent. */
  readonly sslRootCert?: string | undefined;
  readonly maxOpenConns?: number;
  readonly maxIdleConns?: number;
  /** Milliseconds. */
  readonly connMaxLifetime?: number | undefined;
}

/** Whom to connect as: `app` for everything but changes of the schema. */
export type PostgresRole = 'app' | 'migration';

/** Without a password the password file is asked. */
export type Login = Pick<PostgresSettings, 'host' | 'port' | 'database' | 'user' | 'password'>;

export function loginOf(settings: PostgresSettings, role: PostgresRole): Login {
  const { host, port, database, user, password } = settings;
  const migrationUser = settings.migrationUser ?? user;
  if (role === 'app') return { host, port, database, user, password };
  // Without one of its own, the password is the same where the user is.
  const shared = migrationUser === user ? password : undefined;
  return { host, port, database, user: migrationUser, password: settings.migrationPassword ?? shared };
}

/** Connections at most, where the settings do not say. */
export const MAX_CONNECTIONS = 10;

/** With more, one is usually free for the database whatever this process does. */
const FEW_PROCESSORS = 2;

/**
 * Whether this process, which may use so many processors, and the server take them from each other, as far as the
 * server's address tells.
 */
export function sharesProcessors({ host }: Pick<PostgresSettings, 'host'>, processors: number): boolean {
  return processors <= FEW_PROCESSORS && (isLoopback(host) || host.startsWith('/'));
}
