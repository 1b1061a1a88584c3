import { SkepError } from '@skep/core/errors/skep-error.ts';
import { lastingKeyring } from '../keyring/find-keyrings.ts';
import type { SecretsProvider, SecretsSurroundings } from '../provider.ts';
import { documentProvider } from '../secrets-document.ts';
import { accountOf, keyringsOf } from '../store-password.ts';

/** Secrets in the keyring of the user's session itself, in one entry of it: no file, and not many. */
export function keyringProvider(around: SecretsSurroundings): Required<SecretsProvider> {
  const account = `secrets:${accountOf(around)}`;
  const open = () => lastingKeyring(keyringsOf(around), account);
  return documentProvider(
    {
      kind: 'keyring',
      name: 'the keyring',
      async read() {
        const text = await (await open()).get(account);
        return text === undefined ? undefined : Buffer.from(text, 'base64');
      },
      async write(text) {
        const keyring = await open();
        const encoded = text.toString('base64');
        if (encoded.length > keyring.maxChars) {
          throw new SkepError('secrets/full', {
            message: `${keyring.name} takes no more than ${Math.floor((keyring.maxChars * 3) / 4)} bytes of secrets`,
            hint: 'use the encrypted store, with skep secret provider encrypted',
          });
        }
        await keyring.set(account, encoded);
      },
    },
    around,
  );
}
