import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Newest engine API this client was written against, and the oldest it can work with. */
const OURS = { newest: 51, oldest: 24 };

/**
 * The API version to speak: the lower of the engine's newest and ours, because engines refuse versions above their own.
 * Takes the `Api-Version` header of `/_ping`. Throws `runtime/engine-refused` for an engine that is too old.
 */
export function negotiateVersion(offered: string): string {
  const minor = Number(/^1\.(\d{1,3})$/.exec(offered)?.[1] ?? Number.NaN);
  if (!(minor >= OURS.oldest)) {
    throw new SkepError('runtime/engine-refused', {
      message: `the container engine speaks API version "${offered}", at least 1.${OURS.oldest} is needed`,
      hint: 'update the container engine',
    });
  }
  return `1.${Math.min(minor, OURS.newest)}`;
}
