import { SkepError } from '@skep/core/errors/skep-error.ts';
import { busAddress } from './dbus.ts';
import { KernelKeyring } from './kernel-keyring.ts';
import type { Keyring, KeyringSurroundings } from './keyring.ts';
import { MacKeychain } from './mac-keychain.ts';
import { SecretService } from './secret-service.ts';

/** The keyrings that this machine may have, the best first. None is asked anything yet. */
export function findKeyrings({ env, platform, uid }: KeyringSurroundings): readonly Keyring[] {
  if (platform === 'darwin') return [new MacKeychain(env)];
  if (platform !== 'linux' || uid === undefined) return [];
  const address = busAddress(env);
  return [...(address === undefined ? [] : [new SecretService(address, uid)]), new KernelKeyring(env)];
}

/** The first that lasts and answers. Fails with `secrets/keyring` saying why there is none. */
export async function lastingKeyring(keyrings: readonly Keyring[], account: string): Promise<Keyring> {
  const why: string[] = [];
  for (const keyring of keyrings.filter((one) => one.lasts)) {
    try {
      await keyring.get(account);
      return keyring;
    } catch (error) {
      why.push(reasonOf(error));
    }
  }
  throw new SkepError('secrets/keyring', {
    message: `there is no keyring to use${why.length === 0 ? '' : `: ${why.join('; ')}`}`,
  });
}

export function reasonOf(error: unknown): string {
  if (error instanceof SkepError && error.code === 'secrets/keyring') return error.message;
  throw error;
}
