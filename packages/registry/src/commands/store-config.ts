import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RegistryConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { plainHttpFrom, withAliases } from '../config/environment.ts';
import { overridesFrom } from '../config/overrides.ts';
import type { Host } from '../host.ts';
import { problemsError } from './problems.ts';
import { defaultStorePath } from './store-path.ts';

/** The configuration, for commands that only want to know where the store is. */
export async function storeConfig(host: Host, path: string | undefined): Promise<RegistryConfig> {
  if (path === undefined) {
    throw new SkepError('usage/missing-argument', { message: 'the flag "--config" is missing' });
  }
  const env = withAliases(host.env);
  const loaded = await loadConfig({
    path,
    workingDirectory: host.workingDirectory,
    defaultStorePath: defaultStorePath(host),
    overrides: overridesFrom(env),
    plainHttp: plainHttpFrom(env),
  });
  if ('problems' in loaded) throw problemsError(path, loaded.problems, host.stderr);
  return loaded.config;
}
