import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { places } from '@skep/core/files/places.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { RegistryConfig } from '../config/config.ts';
import { plainHttpFrom, withAliases } from '../config/environment.ts';
import { loadConfig as loadConfigFile, type Loaded } from '../config/load.ts';
import { overridesFrom } from '../config/overrides.ts';
import { unavailable } from '../sources/source-body.ts';
import type { Host } from './host.ts';

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

/** The same configuration. Fails with `source/not-available` for what is valid and this version does not have. */
export function servable(config: RegistryConfig): RegistryConfig {
  const [missing] = unavailable(config.sources);
  if (missing !== undefined) throw missing;
  return config;
}
