import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { z } from 'zod';

/** Where in the configuration: member names and list positions from the top. */
export type ConfigPath = readonly PropertyKey[];

/** One thing that is wrong. `at: 'key'` points at the last member's name instead of its value. */
export interface Problem {
  readonly path: ConfigPath;
  readonly message: string;
  readonly at?: 'key';
}

/** `sources[0].file.path`; the empty text for the whole document. */
export function pathText(path: ConfigPath): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');
}

/** All problems in one line, separated by semicolons. */
export function problemsText(problems: readonly Problem[]): string {
  const texts = problems.map(({ path, message }) =>
    [pathText(path), message].filter((part) => part !== '').join(': '),
  );
  return texts.join('; ');
}

/** The message of the error that a check throws; undefined where it throws none. */
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
