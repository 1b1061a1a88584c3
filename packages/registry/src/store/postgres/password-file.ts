import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Login } from './settings.ts';

export interface PasswordFilePlace {
  /** `PGPASSFILE`, where it is set. */
  readonly named: string | undefined;
  readonly homeDirectory: string;
  /** Windows has no permissions of this kind to check. */
  readonly platform: string;
}

/**
 * The password of the first line of libpq's password file that fits ("The Password File" of the PostgreSQL manual), if any.
 * A file that others may read is refused with `store/password-file`; libpq ignores it, which looks like a wrong password.
 */
export async function passwordFromFile(place: PasswordFilePlace, login: Login): Promise<string | undefined> {
  const path = place.named ?? join(place.homeDirectory, '.pgpass');
  const text = await readPrivate(path, place);
  return text === undefined ? undefined : passwordIn(text, login);
}

/** The password of the first line `host:port:database:user:password` that fits; `*` fits everything. */
export function passwordIn(text: string, { host, port, database, user }: Login): string | undefined {
  // A socket's directory is "localhost" in the file.
  const wanted = [host.startsWith('/') ? 'localhost' : host, String(port), database, user];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#')) continue;
    const fields = fieldsOf(line);
    const password = fields[wanted.length];
    const fits = wanted.every(
      (value, index) => fields[index] === ANYTHING || unescape(fields[index]) === value,
    );
    if (fits && password !== undefined && password !== '') return unescape(password);
  }
  return undefined;
}

const ANYTHING = '*';

/** Split at colons that no backslash escapes, with the escapes still in. */
function fieldsOf(line: string): string[] {
  const fields = [''];
  for (const [part] of line.matchAll(/\\.|[^\\]|\\$/gsu)) {
    if (part === ':') fields.push('');
    else fields.push(`${fields.pop() ?? ''}${part}`);
  }
  return fields;
}

function unescape(field: string | undefined): string | undefined {
  return field?.replaceAll(/\\(.)/gsu, '$1');
}

async function readPrivate(
  path: string,
  { named, platform }: PasswordFilePlace,
): Promise<string | undefined> {
  try {
    const { mode } = await stat(path);
    if (platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new SkepError('store/password-file', {
        message: `the password file "${path}" may be read by others (mode ${(mode & 0o777).toString(8)})`,
      });
    }
    return await readFile(path, 'utf8');
  } catch (cause) {
    if (cause instanceof SkepError) throw cause;
    // Nobody need have the file at its usual place.
    if (errnoOf(cause) === 'ENOENT' && named === undefined) return undefined;
    throw new SkepError('store/password-file', { message: `cannot read the password file "${path}"`, cause });
  }
}
