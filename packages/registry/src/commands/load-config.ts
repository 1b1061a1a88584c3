import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { places } from '@skep/core/files/places.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { plainHttpFrom, withAliases } from '../config/environment.ts';
import { loadConfig as loadConfigFile, type Loaded, type RegistryConfig } from '../config/load.ts';
import { overridesFrom } from '../config/overrides.ts';
import type { TelemetryConfig } from '../config/telemetry.ts';
import type { StorePlace } from '../store/open-store.ts';
import type { Host } from './command.ts';

/** The flags that say which configuration a command is about. */
export interface ConfigFlags {
  readonly config: string;
  readonly authMode?: string | undefined;
}

/** Reads a configuration as every command does, with what flags and environment override. Fails as `config/load.ts` does. */
export function readConfig(host: Host, { config, authMode }: ConfigFlags): Promise<Loaded> {
  const env = withAliases(host.env);
  const mode =
    authMode === undefined ? [] : [{ path: ['auth', 'mode'], value: authMode, from: '--auth-mode' }];
  return loadConfigFile({
    path: config,
    workingDirectory: host.cwd,
    defaultStorePath: join(places(host).dataDir, 'registry.db'),
    // Flags come first: of two overrides of one member the first to name it is the one that counts in messages.
    overrides: [...mode, ...overridesFrom(env)],
    plainHttp: plainHttpFrom(env),
  });
}

/**
 * As `readConfig`, for a command that needs a configuration without problems. Fails also with `config/invalid`: one problem
 * is the error itself; several are written first, a line each, and the error counts them.
 */
export async function loadConfig(host: Host, flags: ConfigFlags): Promise<RegistryConfig> {
  return withoutProblems(host, flags, await readConfig(host, flags));
}

export function withoutProblems({ terminal }: Host, { config }: ConfigFlags, loaded: Loaded): RegistryConfig {
  if ('config' in loaded) return loaded.config;
  const { problems } = loaded;
  const [only] = problems;
  // The line says all there is to do, so there is no hint.
  if (problems.length === 1 && only !== undefined) {
    throw new SkepError('config/invalid', { message: only, hint: '' });
  }
  for (const problem of problems) terminal.err(`${printable(problem)}\n`);
  throw new SkepError('config/invalid', {
    message: `${problems.length} problems in the configuration "${config}"`,
    hint: 'correct the lines above and try again',
  });
}

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
