import type { ClaimLimits } from '@skep/auth/claims/claims.ts';
import type { RequestRate } from '../api/http/rate-limit.ts';
import type { Rate } from '../api/http/token-buckets.ts';
import type { AuthConfig } from './auth.ts';
import type { AuditConfig } from './audit.ts';
import type { CorsSettings } from './cors.ts';
import type { DatabaseConfig } from './database.ts';
import type { ServingLimits, SourceLimits } from '../shape/limits.ts';
import type { TelemetryConfig } from './telemetry.ts';
import type { NamedRegistry, NamedSource } from '../store/rows.ts';

/** A configuration that has passed every check; nothing in it is unsupported. */
export interface RegistryConfig {
  /** The file it was read from, absolute. */
  readonly path: string;
  readonly sources: readonly NamedSource[];
  readonly registries: readonly NamedRegistry[];
  readonly limits: SourceLimits;
  readonly serving: ServingLimits;
  /** Bytes of publisher `_meta` that one version may have. */
  readonly maxMetaBytes: number;
  /** Of everything that has claims. */
  readonly claimLimits: ClaimLimits;
  /** Absent: browsers let no page of another origin call the registry. */
  readonly cors?: CorsSettings;
  /** Absent: callers may ask as often as they like. */
  readonly requestRate?: RequestRate;
  /** How often tokens from one address may be refused. */
  readonly refusalRate: Rate;
  readonly telemetry: TelemetryConfig;
  readonly audit: AuditConfig;
  readonly auth: AuthConfig;
  /** Where the embedded store lies. */
  readonly storage: { readonly path: string };
  /** Takes the place of the embedded store. */
  readonly database?: DatabaseConfig;
}
