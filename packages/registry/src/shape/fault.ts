import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { z } from 'zod';

/** What a check that throws says against a value; undefined when it says nothing. */
export function faultOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof SkepError) return error.message;
    throw error;
  }
}

/** A check of a shape, for `superRefine`: `fault` says what is wrong with the value, or nothing. */
export function unless<T>(fault: (value: T) => string | undefined) {
  return (value: T, context: z.RefinementCtx<T>): void => {
    const message = fault(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  };
}
