import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RegistryConfig } from '../config/config.ts';
import type { Host } from '../host.ts';
import { loadFrom } from './load-from.ts';
import { problemsError } from './problems.ts';

/** The configuration, for commands that only want to know where the store is. */
export async function storeConfig(host: Host, path: string | undefined): Promise<RegistryConfig> {
  if (path === undefined) {
    throw new SkepError('usage/missing-argument', { message: 'the flag "--config" is missing' });
  }
  const loaded = await loadFrom(host, path);
  if ('problems' in loaded) throw problemsError(path, loaded.problems, host.stderr);
  return loaded.config;
}
