import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Where a synchronisation failed, as metrics count it (specification §4.5). */
export type FailureClass = 'HandlerCreationFailed' | 'ValidationFailed' | 'FetchFailed' | 'StorageFailed';

export function failureClass(error: unknown): FailureClass {
  const area = error instanceof SkepError ? error.code.split('/', 1)[0] : undefined;
  if (area === 'catalog') return 'ValidationFailed';
  if (area === 'store') return 'StorageFailed';
  const isSettings =
    area === 'config' || (error instanceof SkepError && error.code.startsWith('source/invalid-'));
  return isSettings ? 'HandlerCreationFailed' : 'FetchFailed';
}
