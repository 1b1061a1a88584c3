import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RegistryConfig } from './config.ts';

/** What a valid configuration asks for and this version does not have, an error each. */
export function unavailable({ sources }: RegistryConfig): SkepError[] {
  const unread = sources.filter(({ kind }) => kind === 'kubernetes');
  return unread.map(
    ({ name }) =>
      new SkepError('source/not-available', {
        message: `source "${name}": kubernetes sources are not available yet`,
      }),
  );
}
