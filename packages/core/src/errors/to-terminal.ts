import { inspect } from 'node:util';
import { redact, redactText } from '../log/redact.ts';
import { paint } from '../terminal/paint.ts';
import { printable, printableLines } from '../terminal/printable.ts';
import { CODES } from './codes.ts';
import { SkepError } from './skep-error.ts';

export interface TerminalStyle {
  /** ANSI colours; the caller knows of terminals and NO_COLOR. */
  readonly color: boolean;
  /** Adds code, detail, stack and causes: what a defect report needs. */
  readonly debug: boolean;
}

export interface TerminalError {
  /** Lines for stderr, newline-terminated. */
  readonly text: string;
  readonly exitCode: number;
}

/**
 * One line `Error: <message>; <hint>`, which may quote others, and with `debug` the facts behind it. Other
 * errors are defects, whose text may hold anything: only `debug` shows it, redacted as in logs.
 */
export function toTerminal(error: unknown, style: TerminalStyle): TerminalError {
  const known = error instanceof SkepError ? error : new SkepError('internal/bug', { cause: error });
  const message = printable(known.message);
  const between = /[.?!]$/u.test(message) ? ' ' : '; ';
  const hint = known.hint === '' ? '' : paint('dim', between + printable(known.hint), style.color);
  const lines = [`${paint('red', 'Error:', style.color)} ${message}${hint}`];
  if (style.debug) lines.push(...debugLines(known).map((line) => paint('dim', line, style.color)));
  return { text: `${lines.join('\n')}\n`, exitCode: CODES[known.code].exitCode };
}

function debugLines(error: SkepError): string[] {
  const lines = [`  code: ${error.code}`];
  if (Object.keys(error.detail).length > 0)
    lines.push(`  detail: ${inspect(redact(error.detail), { breakLength: Infinity, depth: 10 })}`);
  for (let cause: unknown = error; cause !== undefined; cause = causeOf(cause)) {
    lines.push(...stackOf(cause).split('\n').map(debugLine));
  }
  return lines;
}

function debugLine(line: string): string {
  return `  ${printableLines(redactText(line))}`;
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
