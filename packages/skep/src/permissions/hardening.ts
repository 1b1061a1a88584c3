/**
 * How hard a container is held beyond its profile, the hardest first: with its own files read-only and as an ordinary user
 * in place of root, with them read-only, or as its image says. What a server does not start with is lowered once, and kept.
 */
export const HARDENINGS = ['other-user', 'read-only', 'none'] as const;
export type Hardening = (typeof HARDENINGS)[number];

const READ_ONLY = /\bEROFS\b|\[Errno 30\]|read-only file system/i;
const RIGHTS = /\b(?:EACCES|EPERM)\b|\[Errno 13?\]|permission denied|operation not permitted/i;

/** Whether a line of a server tells of a file system that cannot be written. */
export const saysReadOnly = (line: string): boolean => READ_ONLY.test(line);

/** How a server failed before it had answered. */
export interface FailedFirst {
  /** What it, or the engine, said last. */
  readonly said: readonly string[];
  /** It did not end, so each further try takes as long as it may take to answer. */
  readonly isLate: boolean;
  /** The person insists on read-only files. */
  readonly insists: boolean;
}

/** What is tried next, by what a server said; undefined where it did not fail for this, or nothing is left to lower. */
export function lowerHardening(
  hardening: Hardening | undefined,
  { said, isLate, insists }: FailedFirst,
): Hardening | undefined {
  if (hardening === undefined || hardening === 'none') return undefined;
  const atLast = insists ? undefined : 'none';
  if (said.some(saysReadOnly)) return atLast;
  if (!said.some((line) => RIGHTS.test(line))) return undefined;
  return hardening === 'other-user' && (insists || !isLate) ? 'read-only' : atLast;
}

/** Whether the own files of a container are read-only. */
export function isReadOnly(given: {
  readonly read_only?: boolean | undefined;
  readonly hardening?: Hardening | undefined;
}): boolean {
  const { read_only, hardening = 'none' } = given;
  return read_only ?? hardening !== 'none';
}
