import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Finding, FindRuntime } from '../environment.ts';
import { findBubblewrap } from './bubblewrap.ts';
import type { Bubblewrap } from './confine.ts';

/** A bubblewrap that works here. */
export const findSandbox: FindRuntime = (environment) =>
  tryBubblewrap(
    () => findBubblewrap(environment),
    (bubblewrap) => async () => {
      const { SandboxRuntime } = await import('./sandbox-runtime.ts');
      return new SandboxRuntime(environment, bubblewrap);
    },
  );

export async function tryBubblewrap<Found>(
  find: () => Promise<Bubblewrap>,
  make: (bubblewrap: Bubblewrap) => Found,
): Promise<Finding<Found>> {
  try {
    return { found: make(await find()) };
  } catch (error) {
    if (!hasCode(error, 'runtime/sandbox-unavailable')) throw error;
    return { refusals: [{ strategy: 'sandbox', why: `${error.message}; ${error.hint}` }], error };
  }
}
