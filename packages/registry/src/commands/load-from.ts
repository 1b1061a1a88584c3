import { plainHttpFrom, withAliases } from '../config/environment.ts';
import { type Loaded, loadConfig } from '../config/load.ts';
import { type Override, overridesFrom } from '../config/overrides.ts';
import type { Host } from '../host.ts';
import { defaultStorePath } from './store-path.ts';

/** Reads a configuration as every command does, with what the environment overrides. Fails as `loadConfig` does. */
export function loadFrom(host: Host, path: string, flags: readonly Override[] = []): Promise<Loaded> {
  const env = withAliases(host.env);
  return loadConfig({
    path,
    workingDirectory: host.workingDirectory,
    defaultStorePath: defaultStorePath(host),
    // Flags come first: of two overrides of one member the first to name it is the one that counts in messages.
    overrides: [...flags, ...overridesFrom(env)],
    plainHttp: plainHttpFrom(env),
  });
}
