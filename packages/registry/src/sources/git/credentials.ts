import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { GitCredentials, GitRepository } from './repository-url.ts';

/** `auth` of a git source: user name and password file for http and https, or a key for ssh. */
export interface GitAuth {
  readonly username?: string | undefined;
  /** Absolute; read again for every fetch, so that a rotated password needs no restart. */
  readonly passwordFile?: string | undefined;
  /** Absolute. With it ssh uses no other key, no agent and no settings of the account. */
  readonly sshKeyFile?: string | undefined;
}

const MAX_BYTES = 65_536;

/**
 * The credentials of this fetch, from the file or from the address; undefined when there are none. Fails with `file/*`,
 * and with `source/invalid-credentials` for a file without a password or an ssh address (which signs in with keys).
 */
export async function credentialsOf(
  repository: GitRepository,
  auth: GitAuth | undefined,
): Promise<GitCredentials | undefined> {
  if (auth?.sshKeyFile !== undefined) {
    if (repository.transport === 'ssh') return undefined;
    throw new SkepError('source/invalid-credentials', {
      message: `"${repository.url}" signs in with a password, not with an ssh key`,
      hint: 'give auth.username and auth.passwordFile, or an ssh address',
    });
  }
  if (auth?.passwordFile === undefined) return repository.credentials;
  if (repository.transport === 'ssh' || repository.credentials !== undefined) {
    throw new SkepError('source/invalid-credentials', {
      message:
        repository.transport === 'ssh'
          ? `"${repository.url}" signs in with an ssh key, not with a password`
          : `"${repository.url}" has credentials in its address and in "auth"`,
      hint: 'remove one of the two',
    });
  }
  const { username = '', passwordFile } = auth;
  const text = await readText(passwordFile, { maxBytes: MAX_BYTES, what: 'password file' });
  const password = text.trim();
  // A line feed would end the value in git's credential protocol (git-credential(1)) and begin another one.
  if (password === '' || /[\r\n\0]/u.test(password + username)) {
    throw new SkepError('source/invalid-credentials', {
      message: `password file "${passwordFile}" ${password === '' ? 'is empty' : 'has more than one line'}`,
    });
  }
  return { username, password };
}
