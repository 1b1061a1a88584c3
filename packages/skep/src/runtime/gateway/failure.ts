import { SkepError } from '@skep/core/errors/skep-error.ts';

export function notFetched(specifier: string, why: string, next: { readonly hint?: string } = {}): SkepError {
  return new SkepError('runtime/prefetch-failed', {
    message: `package "${specifier}" could not be fetched: ${why}`,
    ...next,
  });
}
