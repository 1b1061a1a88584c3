import { parseDuration } from '@skep/core/time/duration.ts';
import { z } from 'zod';

/** Name of a source or registry (RFC 1123 label). */
export const label = z
  .string()
  .regex(
    /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
    'must be 1 to 63 lower-case letters, digits and inner hyphens',
  );

export const nonEmpty = z.string().min(1, 'must not be empty');

/** Longer than zero; at most `longest` milliseconds where there is a limit. */
export function duration(longest?: { readonly milliseconds: number; readonly text: string }) {
  return z.string().superRefine((text, context) => {
    const milliseconds = durationOf(text) ?? 0;
    if (milliseconds <= 0) {
      const message = `must be a positive duration such as "5m", not "${text}"`;
      context.addIssue({ code: 'custom', message });
    } else if (longest !== undefined && milliseconds > longest.milliseconds) {
      context.addIssue({ code: 'custom', message: `must not exceed ${longest.text}` });
    }
  });
}

/** Claims of a source or registry. What they may be depends on the limits: `check-claims.ts` checks all of it. */
export const claims = z.unknown().meta({
  type: 'object',
  description: 'For each claim a text, or a list of texts that a caller must hold all of',
});

/** Milliseconds of a Go duration, or undefined when it is none. */
export function durationOf(text: string): number | undefined {
  try {
    return parseDuration(text);
  } catch {
    return undefined;
  }
}
