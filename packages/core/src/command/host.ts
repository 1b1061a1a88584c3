import { SkepError } from '../errors/skep-error.ts';
import type { Clock } from '../time/clock.ts';
import type { Terminal } from './terminal.ts';

/** What a command takes from around it. Only a program's entry makes one from the real process. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  readonly terminal: Terminal;
  readonly clock: Clock;
  /** Aborts when the program is asked to end; a second time ends it at once. */
  readonly signal: AbortSignal;
}

/** The working directory. Fails with `file/not-found` when it was removed, or may not be entered any more. */
export function workingDirectory({ cwd, env }: Pick<NodeJS.Process, 'cwd' | 'env'>): string {
  try {
    return cwd();
  } catch (cause) {
    // Shells keep its name.
    const name = env['PWD'] ? ` "${env['PWD']}"` : '';
    throw new SkepError('file/not-found', {
      message: `the working directory${name} is not there any more`,
      hint: 'change to one that exists with cd, and try again',
      cause,
    });
  }
}

/**
 * Aborts at the first of these signals; the second ends the process at once, with the status given here. The
 * signals no longer do anything by themselves.
 */
export function abortOnSignals(
  process: Pick<NodeJS.Process, 'on' | 'exit'>,
  statuses: Readonly<Record<string, number>>,
  reason?: Error,
): AbortSignal {
  const controller = new AbortController();
  for (const [name, status] of Object.entries(statuses)) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(status);
      controller.abort(reason);
    });
  }
  return controller.signal;
}
