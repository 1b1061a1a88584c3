import { CODES, type Code } from './codes.ts';

export interface SkepErrorOptions {
  /** What failed, with the offending value, in one line. Defaults to the row's title. */
  readonly message?: string | undefined;
  /** What to do next. Defaults to the row's hint. */
  readonly hint?: string | undefined;
  /** Structured facts for logs; never a secret. */
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** The one error class. Its `code` decides HTTP status, JSON-RPC code and exit status (see codes.ts). */
export class SkepError extends Error {
  override readonly name = 'SkepError';
  readonly code: Code;
  readonly hint: string;
  readonly detail: Readonly<Record<string, unknown>>;

  constructor(code: Code, options: SkepErrorOptions = {}) {
    super(options.message ?? CODES[code].title, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.hint = options.hint ?? CODES[code].hint;
    this.detail = options.detail ?? {};
  }
}

/** True when `error` is a SkepError of that code. */
export function hasCode(error: unknown, code: Code): error is SkepError {
  return error instanceof SkepError && error.code === code;
}
