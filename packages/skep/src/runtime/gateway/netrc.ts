import path from 'node:path';
import type { RuntimeEnvironment } from '../environment.ts';
import { userFile } from '../user-file.ts';

/** By host. */
export type Logins = ReadonlyMap<string, readonly [user: string, password: string]>;

/** The logins of `~/.netrc`, or of the file that `NETRC` names, and what is given beside it. Throws `config/unreadable`. */
export async function readNetrc({
  env,
  home,
  loginFiles,
}: Pick<RuntimeEnvironment, 'env' | 'home' | 'loginFiles'>): Promise<Logins> {
  const own = (await userFile(env['NETRC'] ?? path.join(home, '.netrc'))) ?? '';
  return parseNetrc(`${own}\n${loginFiles?.netrc ?? ''}`);
}

/**
 * The Authorization header for one address: what `registry` signs in with, in its address or in the file. It is for the
 * registry, where it is, and for nothing that it names on other hosts or that it sends the caller to.
 */
export function loginFor(at: URL, registry: URL, logins: Logins): string | undefined {
  if (at.origin !== registry.origin) return undefined;
  const { username, password } = registry;
  const [user, secret] =
    username === ''
      ? (logins.get(registry.hostname) ?? [])
      : [decodeURIComponent(username), decodeURIComponent(password)];
  if (user === undefined) return undefined;
  return `Basic ${Buffer.from(`${user}:${secret ?? ''}`).toString('base64')}`;
}

/** Logins by host, of a file as ftp(1) reads it; macros and `default` are left out. */
export function parseNetrc(text: string): Map<string, readonly [string, string]> {
  const found = new Map<string, readonly [string, string]>();
  const lines = text.split('\n').map((line) => line.replace(/^\s*#.*$/, ''));
  const tokens = lines.join('\n').split(/\s+/);
  let machine: string | undefined;
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1] ?? '';
    const [user, password] = (machine === undefined ? undefined : found.get(machine)) ?? ['', ''];
    if (token === 'machine') machine = next;
    else if (token === 'default' && tokens[at - 1] !== 'machine') machine = undefined;
    else if (machine !== undefined && token === 'login') found.set(machine, [next, password]);
    else if (machine !== undefined && token === 'password') found.set(machine, [user, next]);
  }
  return found;
}
