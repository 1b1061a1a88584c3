import { CODES, type Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** An error as it travels. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** What is not a SkepError keeps its text to itself. */
export function toFailure(error: unknown): Failure {
  const known = error instanceof SkepError ? error : new SkepError('internal/bug', { cause: error });
  return { code: known.code, message: known.message, hint: known.hint, detail: { ...known.detail } };
}

export function fromFailure({ code, message, hint, detail }: Failure): SkepError {
  return new SkepError(isCode(code) ? code : 'supervisor/protocol', { message, hint, detail });
}

function isCode(code: string): code is Code {
  return Object.hasOwn(CODES, code);
}
