import { resolve } from 'node:path';
import { readText } from '@skep/core/files/read-limited.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import type { Context } from './context.ts';

/** A longer token is none (docs/behaviour/proxy.md#sign-in). */
const MAX_BYTES = 16 * 1024;

/**
 * How a command that speaks with a server shows it who asks; a token in an argument could be read by any user, and one of a
 * variable would go to servers that nobody thought of (decision 0386).
 */
export const tokenSettings = settingsOf({ group: 'Sign-in' }, [
  flag('path', 'token-file', 'File with the bearer token to show the server', { placeholder: 'file' }),
]);

/**
 * The token in a file, without white space around it; undefined without a file. Fails as `readText` does, and with
 * `usage/invalid-value` where the file holds no token (RFC 6750 §2.1).
 */
export async function readClientToken(
  file: string | undefined,
  { cwd }: Pick<Context, 'cwd'>,
): Promise<string | undefined> {
  if (file === undefined || file === '') return undefined;
  const text = await readText(resolve(cwd, file), { maxBytes: MAX_BYTES, what: 'token file' });
  const token = text.trim();
  if (/^[\w\-.~+/]+=*$/u.test(token)) return token;
  throw new SkepError('usage/invalid-value', {
    message: `the token file "${file}" ${token === '' ? 'is empty' : 'holds no bearer token'}`,
    hint: 'write the token into it, and nothing else',
  });
}
