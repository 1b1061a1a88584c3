import { randomBytes } from 'node:crypto';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { findKeyrings, lastingKeyring } from './keyring/find-keyrings.ts';
import type { Keyring } from './keyring/keyring.ts';
import type { SecretsSurroundings } from './provider.ts';

const MAX_PASSWORD_BYTES = 4096;

/** What a password has to open; fails with `secrets/wrong-password` where it does not. */
type TryPassword<T> = (password: string) => Promise<T>;

export const keyringsOf = (around: SecretsSurroundings): readonly Keyring[] =>
  around.keyrings ?? findKeyrings(around);

/** Each store of this user has an entry of its own. */
export const accountOf = ({ places }: Pick<SecretsSurroundings, 'places'>): string => places.secretsFile;

/** True where a password was given for this command, by file or variable. */
export const isPasswordGiven = ({ env }: Pick<SecretsSurroundings, 'env'>): boolean =>
  (env['SKEP_SECRETS_PASSWORD_FILE'] || env['SKEP_SECRETS_PASSWORD'] || '') !== '';

/**
 * Opens the store with the password that the person gave, that a keyring holds, or that the person is asked for; the
 * latter is kept in a keyring once it has opened the store. Fails with `secrets/locked` where there is none, and with
 * `secrets/wrong-password`.
 */
export async function openWithPassword<T>(around: SecretsSurroundings, open: TryPassword<T>): Promise<T> {
  const given = await givenPassword(around.env);
  if (given !== undefined) return open(given);
  const { passwords, why } = await storedPasswords(around);
  for (const password of passwords) {
    try {
      return await open(password);
    } catch (error) {
      if (!hasCode(error, 'secrets/wrong-password')) throw error;
      why.push('the password in the keyring does not open it');
    }
  }
  const password = await askFor('The password of the secrets store', around);
  if (password === undefined) throw locked(why);
  const opened = await open(password);
  await keep(password, around);
  return opened;
}

/**
 * The password of a store that is to be made: one that was given, or is there, or a random one that a keyring keeps from
 * now on, or one that the person chooses. Fails with `secrets/locked`.
 */
export async function newPassword(around: SecretsSurroundings): Promise<string> {
  const given = await givenPassword(around.env);
  if (given !== undefined) return given;
  const { passwords, why } = await storedPasswords(around);
  if (passwords[0] !== undefined) return passwords[0];
  const keyring = await lastingKeyring(keyringsOf(around), accountOf(around)).catch(() => undefined);
  if (keyring) {
    const made = randomBytes(32).toString('base64url');
    await keyring.set(accountOf(around), made);
    return made;
  }
  const chosen = await askFor('Choose a password for the secrets store', around);
  if (chosen === undefined) throw locked(why);
  const again = await askFor('The same password again', around);
  if (again !== chosen) {
    throw new SkepError('secrets/wrong-password', { message: 'the two passwords differ', hint: 'try again' });
  }
  await keep(chosen, around);
  return chosen;
}

/** Forgets the password in every keyring; the names of those that held one. */
export async function forgetPassword(around: SecretsSurroundings): Promise<readonly string[]> {
  const held: string[] = [];
  for (const keyring of keyringsOf(around)) {
    const password = await keyring.get(accountOf(around)).catch(unlessUnusable);
    if (password === undefined) continue;
    await keyring.delete(accountOf(around));
    held.push(keyring.name);
  }
  return held;
}

async function givenPassword(env: SecretsSurroundings['env']): Promise<string | undefined> {
  const file = env['SKEP_SECRETS_PASSWORD_FILE'] ?? '';
  if (file === '') return env['SKEP_SECRETS_PASSWORD'] || undefined;
  const text = await readText(file, {
    maxBytes: MAX_PASSWORD_BYTES,
    what: 'password file of SKEP_SECRETS_PASSWORD_FILE',
  });
  const password = text.replace(/\r?\n$/, '');
  if (password !== '') return password;
  throw new SkepError('secrets/locked', {
    message: `the password file "${file}" of SKEP_SECRETS_PASSWORD_FILE is empty`,
  });
}

async function storedPasswords(around: SecretsSurroundings) {
  const passwords: string[] = [];
  const why: string[] = [];
  for (const keyring of keyringsOf(around)) {
    try {
      const password = await keyring.get(accountOf(around));
      if (password !== undefined && password !== '') passwords.push(password);
      else why.push(`${keyring.name} holds no password for it`);
    } catch (error) {
      if (!hasCode(error, 'secrets/keyring')) throw error;
      why.push(error.message);
    }
  }
  return { passwords, why };
}

async function askFor(name: string, { ask }: SecretsSurroundings): Promise<string | undefined> {
  if (!ask) return undefined;
  const answer = await ask({ name, required: true, secret: true });
  if (answer !== '') return answer;
  throw new SkepError('secrets/locked', { message: 'the password cannot be empty' });
}

/** In the first keyring that takes it; without one, the person is asked again next time. */
async function keep(password: string, around: SecretsSurroundings): Promise<void> {
  for (const keyring of keyringsOf(around)) {
    const kept = await keyring.set(accountOf(around), password).then(() => true, unlessUnusable);
    if (kept === true) return;
  }
}

function unlessUnusable(error: unknown): undefined {
  if (!hasCode(error, 'secrets/keyring')) throw error;
}

const locked = (why: readonly string[]): SkepError =>
  new SkepError('secrets/locked', {
    message: `the secrets store is locked${why.length === 0 ? '' : `: ${why.join('; ')}`}`,
  });
