import type { Context } from '../cli/context.ts';
import type { Runtime } from '../runtime/runtime.ts';

/**
 * `note`: nothing is wrong, and something is missing that others use; `warning`: something does not work as a person would
 * expect; `broken`: servers cannot be run, or are not found again.
 */
export type Verdict = 'ok' | 'note' | 'warning' | 'broken';

/** What a check found. */
export interface Finding {
  readonly verdict: Verdict;
  /** Free of secrets. */
  readonly text: string;
  /** What to do, where it is not what the check says for all cases. */
  readonly remedy?: string;
  /** Mends it without losing anything, and tells what it did. */
  readonly fix?: () => Promise<string>;
}

/** A row of the table of checks. */
export interface Check {
  /** Never used again for something else. */
  readonly code: string;
  readonly title: string;
  /** What is looked at, for the reference. */
  readonly about: string;
  readonly remedy: string;
  /** Changes nothing. Undefined where there is nothing to look at on this machine. */
  readonly look: (inquiry: Inquiry) => Promise<Finding | undefined>;
}

/** What the checks of one examination share. */
export interface Inquiry {
  readonly context: Context;
  /** Aborts when the time of a check is over. */
  readonly signal: AbortSignal;
  /** The runtime that commands would use, connected once. Fails as `openRuntime`. */
  readonly runtime: () => Promise<Runtime>;
}

export const ok = (text: string): Finding => ({ verdict: 'ok', text });

/** As many names as fit a line or two. */
export function someOf(names: readonly string[]): string {
  const MOST = 5;
  const more = names.length > MOST ? ` and ${names.length - MOST} more` : '';
  return `${names.slice(0, MOST).join(', ')}${more}`;
}
