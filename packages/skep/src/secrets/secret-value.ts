import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';

export const MAX_SECRET_BYTES = 1024 * 1024;
/** As much as Linux takes for one variable, with its name and the end (MAX_ARG_STRLEN of execve(2)). */
const MAX_VARIABLE_BYTES = 128 * 1024;

/**
 * The text of a secret as it was piped or typed; one line end at its end may belong to the program that wrote it. Fails
 * with `secrets/invalid-value`.
 */
export function checkValue(bytes: Buffer, name: string, ending?: 'without line end'): string {
  const text = textOf(bytes, name);
  const value = ending === undefined ? text : text.replace(/\r?\n$/, '');
  if (value === '') throw invalid(`validation error: secret value of "${printable(name)}" cannot be empty`);
  if (value.includes('\0')) throw invalid(`the value of "${printable(name)}" contains NUL`);
  if (Buffer.byteLength(value) <= MAX_SECRET_BYTES) return value;
  throw invalid(`the value of "${printable(name)}" is larger than ${MAX_SECRET_BYTES} bytes`);
}

/** Fails with `secrets/invalid-value` where no server could be given it. */
export function checkFitsVariable(value: string, name: string, target: string): string {
  if (value.includes('\0')) throw invalid(`the value of "${printable(name)}" contains NUL`);
  if (Buffer.byteLength(value) + target.length + 2 <= MAX_VARIABLE_BYTES) return value;
  throw new SkepError('secrets/invalid-value', {
    message: `the secret "${printable(name)}" is too long for the environment variable ${target}`,
    hint: `a variable takes ${MAX_VARIABLE_BYTES} bytes; give the server a file, with -v`,
  });
}

function textOf(bytes: Buffer, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new SkepError('secrets/invalid-value', {
      message: `the value of "${printable(name)}" is not UTF-8 text`,
      hint: 'encode it as text first, for example with base64',
      cause,
    });
  }
}

const invalid = (message: string): SkepError => new SkepError('secrets/invalid-value', { message });
