import { parseDuration } from '@skep/core/time/duration.ts';
import { z } from 'zod';
import { unless } from './problem.ts';

/** Name of a source or registry (RFC 1123 label). */
export const label = z
  .string()
  .regex(
    /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
    'must be 1 to 63 lower-case letters, digits and inner hyphens',
  );

export const nonEmpty = z.string().min(1, 'must not be empty');

/** Milliseconds of a duration that is longer than zero and at most `longest`, where there is a limit. */
export function duration(longest?: { readonly milliseconds: number; readonly text: string }) {
  return z
    .string()
    .superRefine(
      unless((text) => {
        const milliseconds = durationOf(text);
        if (milliseconds <= 0) return `must be a positive duration such as "5m", not "${text}"`;
        return longest !== undefined && milliseconds > longest.milliseconds
          ? `must not exceed ${longest.text}`
          : undefined;
      }),
    )
    .transform(durationOf);
}

/** An absolute http or https address. */
export const httpUrl = z.string().superRefine(
  unless((value) => {
    const url = URL.parse(value);
    if (url === null || url.host === '') return 'must be an absolute URL with host';
    return /^https?:$/.test(url.protocol) ? undefined : 'must use http or https scheme';
  }),
);

/** Milliseconds of a Go duration; 0 when it is none. */
function durationOf(text: string): number {
  try {
    return parseDuration(text);
  } catch {
    return 0;
  }
}

/** Says in JSON Schema that an object holds exactly one of these members. */
export function exactlyOne(members: readonly string[]) {
  return { oneOf: members.map((member) => ({ required: [member] })) };
}
