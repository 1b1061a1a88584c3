import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { readBytes } from '@skep/core/files/read-limited.ts';
import type { SecretsProvider, SecretsSurroundings } from '../provider.ts';
import { MAX_FILE_BYTES, MAX_TEXT_BYTES, Seal } from '../sealed-file.ts';
import { documentProvider } from '../secrets-document.ts';
import { newPassword, openWithPassword } from '../store-password.ts';

/** Secrets in one encrypted file of the user, whose password is in a keyring, given, or asked for. */
export function encryptedProvider(around: SecretsSurroundings): Required<SecretsProvider> {
  const file = around.places.secretsFile;
  let seal: Seal | undefined;
  let sealed: Buffer | undefined;
  const openWith = async (one: Seal, bytes: Buffer): Promise<Buffer> => {
    const text = await one.open(bytes, file);
    seal = one;
    return text;
  };
  return documentProvider(
    {
      kind: 'encrypted',
      name: `"${file}"`,
      async read() {
        const bytes = await storedBytes(file);
        sealed = bytes;
        // Nothing to open.
        if (bytes === undefined) return undefined;
        // The file may have been replaced, with another password.
        if (seal !== undefined) {
          const known = await openWith(seal, bytes).catch(unlessWrong);
          if (known) return known;
        }
        return openWithPassword(around, (password) => openWith(new Seal(password), bytes));
      },
      async write(text) {
        if (text.length > MAX_TEXT_BYTES) {
          throw new SkepError('secrets/full', {
            message: `the secrets would need more than ${MAX_TEXT_BYTES / 1024 / 1024} MiB`,
          });
        }
        seal ??= new Seal(await newPassword(around));
        await atomicWrite(file, await seal.close(text, sealed));
      },
    },
    around,
  );
}

/** An empty file holds no secrets, as a missing one. */
async function storedBytes(file: string): Promise<Buffer | undefined> {
  try {
    const bytes = await readBytes(file, { maxBytes: MAX_FILE_BYTES, what: 'secrets store' });
    return bytes.length === 0 ? undefined : bytes;
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return undefined;
    throw error;
  }
}

function unlessWrong(error: unknown): undefined {
  if (!hasCode(error, 'secrets/wrong-password')) throw error;
}
