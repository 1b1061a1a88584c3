import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RegistryConfig } from './config.ts';

/** What a valid configuration asks for and this version does not have, an error each. */
export function unavailable({ sources, database }: RegistryConfig): SkepError[] {
  const unread = sources.filter(({ kind }) => kind === 'kubernetes');
  return [
    ...unread.map(
      ({ name }) =>
        new SkepError('source/not-available', {
          message: `source "${name}": kubernetes sources are not available yet`,
        }),
    ),
    ...(database?.dynamicAuth === true ? [noDynamicAuth()] : []),
  ];
}

/** For whatever connects to the database of a configuration. */
export function assertLogin({ database }: RegistryConfig): void {
  if (database?.dynamicAuth === true) throw noDynamicAuth();
}

function noDynamicAuth(): SkepError {
  return new SkepError('usage/not-available', {
    message: 'database.dynamicAuth: signing in to the database with a cloud identity is not available yet',
    hint: 'give database.password, or a password file with PGPASSFILE',
  });
}
