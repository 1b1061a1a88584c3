import { parseRepository } from './repository-url.ts';

export const KEY_NEEDED =
  'an ssh repository of a source made through the API needs auth.sshKeyFile, in one of the folders of limits.allowedPaths; ' +
  'only sources of the configuration file use the keys of the server’s account';

/** Whether a repository would be asked with whatever keys the account of the server has. */
export function needsKey(repository: string, auth: object | undefined): boolean {
  if (parseRepository(repository).transport !== 'ssh') return false;
  return auth === undefined || !('sshKeyFile' in auth);
}
