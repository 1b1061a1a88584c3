import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Shape } from '@skep/core/settings/shape.ts';

/** Reads what an engine answered. Fails with `runtime/engine-refused`, naming the member that is not as it should be. */
export function readAnswer<T>(shape: Shape<T>, body: unknown): T {
  return shape(body, (why, ...path) => {
    throw new SkepError('runtime/engine-refused', {
      message: `the container engine answered what Skep cannot read: ${['', ...path].join('/')} ${why}`,
    });
  });
}
