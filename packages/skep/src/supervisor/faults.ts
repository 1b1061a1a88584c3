import type { Log } from '@skep/core/log/log.ts';

/**
 * Errors that no part of a program has caught, told to the listener instead of ending the process; the function returned
 * ends that.
 */
export type OnFault = (listener: (error: unknown) => void) => () => void;

/**
 * Keeps a process alive that hosts proxies: a defect in what one workload meets (an answer nobody expected, a callback that
 * throws) must not cut off the clients of all others. It is logged; the request it happened in ends by its time limit.
 * What hits the process itself (memory, a signal) ends it, and its watcher starts it again.
 */
export function outliveFaults(onFault: OnFault, log: Log): () => void {
  return onFault((error) => log.error({ err: error }, 'an error was caught by nobody; please report it'));
}
