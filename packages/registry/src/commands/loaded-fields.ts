import type { RegistryConfig } from '../config/config.ts';
import type { TelemetryConfig } from '../config/telemetry.ts';
import type { StorePlace } from '../store/open-store.ts';

/** What the log says about a configuration that is about to be served: how much of what, no secret. */
export function loadedFields(config: RegistryConfig, place: StorePlace): object {
  const { path, sources, registries, auth, telemetry, audit, cors } = config;
  return {
    path,
    sources: sources.length,
    registries: registries.length,
    auth: auth.mode,
    public_paths: auth.mode === 'oauth' ? auth.publicPaths : [],
    store: storeFields(place),
    telemetry: telemetryFields(telemetry),
    audit: audit === 'off' ? audit : { log_file: audit.logFile === 'stdout' ? 'stdout' : audit.logFile.path },
    allowed_origins: cors?.allowedOrigins ?? [],
  };
}

function storeFields(place: StorePlace): object {
  if (place.kind === 'sqlite') return { kind: place.kind, path: place.path };
  const { host, port, database, user, migrationUser = user, sslMode } = place.settings;
  return { kind: place.kind, host, port, database, user, migration_user: migrationUser, ssl_mode: sslMode };
}

function telemetryFields(telemetry: TelemetryConfig): object | string {
  if (telemetry === 'off') return telemetry;
  const { serviceName, endpoint, tracing, metrics } = telemetry;
  // Of the address its origin: the rest may carry a key.
  const to = endpoint === 'none' ? endpoint : new URL(endpoint.url).origin;
  return {
    service_name: serviceName,
    endpoint: to,
    sampling: tracing === 'off' ? 0 : tracing.sampling,
    metrics,
  };
}
