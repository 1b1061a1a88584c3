import { SkepError } from '@skep/core/errors/skep-error.ts';

/**
 * Guards the adapters: a name becomes a path of the engine's API or a directory. Naming rules for people are stricter
 * and live with the command. Throws `runtime/invalid-workload`.
 */
export function checkWorkloadName(name: string): void {
  if (name.length > 200 || !/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name)) {
    throw new SkepError('runtime/invalid-workload', {
      message: `invalid workload name "${name}"`,
      hint: 'use letters, digits, dashes, dots and underscores',
    });
  }
}

/** For a name that no workload has. */
export const noSuchWorkload = (name: string): SkepError =>
  new SkepError('runtime/no-such-workload', { message: `no workload "${name}"` });

export const notRunning = (name: string): SkepError =>
  new SkepError('runtime/not-running', { message: `workload "${name}" is not running` });
