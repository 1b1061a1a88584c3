import type { AuthConfig } from './auth.ts';
import type { AuditConfig } from './audit.ts';
import type { CorsSettings } from './cors.ts';
import type { Limits } from '../shape/limits.ts';
import type { TelemetryConfig } from './telemetry.ts';
import type { PostgresSettings } from '../store/postgres/settings.ts';
import type { NamedRegistry, NamedSource } from '../store/rows.ts';

/** A configuration that has passed every check; nothing in it is unsupported. */
export type RegistryConfig = StoreConfig & Everything;

interface Everything {
  /** The file it was read from, absolute. */
  readonly path: string;
  readonly sources: readonly NamedSource[];
  readonly registries: readonly NamedRegistry[];
  readonly limits: Limits;
  /** Absent: browsers let no page of another origin call the registry. */
  readonly cors?: CorsSettings;
  readonly telemetry: TelemetryConfig;
  readonly audit: AuditConfig;
  readonly auth: AuthConfig;
}

/** Where the store is: a file of this machine, or a database in its place. */
export type StoreConfig =
  | { readonly storage: { readonly path: string }; readonly database?: never }
  | { readonly database: PostgresSettings; readonly storage?: never };
