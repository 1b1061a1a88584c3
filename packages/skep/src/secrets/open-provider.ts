import { SkepError } from '@skep/core/errors/skep-error.ts';
import { loadAppConfig, updateAppConfig } from '../config/app-config.ts';
import { lastingKeyring } from './keyring/find-keyrings.ts';
import type { ProviderKind, SecretsProvider, SecretsSurroundings } from './provider.ts';
import { encryptedProvider } from './providers/encrypted.ts';
import { keyringProvider } from './providers/in-keyring.ts';
import { onePasswordProvider } from './providers/one-password.ts';
import { isSystemName } from './reference.ts';
import { accountOf, isPasswordGiven, keyringsOf } from './store-password.ts';

interface ProviderRow {
  /** For a person who chooses. */
  readonly brief: string;
  readonly open: (around: SecretsSurroundings) => SecretsProvider;
}

const VARIABLE = 'SKEP_SECRET_';

/** Where secrets can be kept. */
export const PROVIDERS: Readonly<Record<ProviderKind, ProviderRow>> = {
  encrypted: {
    brief: 'a file encrypted with a password, which your keyring keeps',
    open: encryptedProvider,
  },
  keyring: { brief: 'the keyring of your session itself', open: keyringProvider },
  '1password': { brief: '1Password, through its program op; read only', open: onePasswordProvider },
  environment: {
    brief: 'variables SKEP_SECRET_<NAME> of the command; read only',
    open: ({ env }) => ({ kind: 'environment', get: async (name) => env[VARIABLE + name] || undefined }),
  },
  none: {
    brief: 'nowhere: whoever asks for a secret is refused',
    open: () => {
      throw new SkepError('secrets/turned-off');
    },
  },
};

export const isProviderKind = (kind: string): kind is ProviderKind => Object.hasOwn(PROVIDERS, kind);

/** What a person chose, by variable or configuration; undefined where nobody has. Fails with `usage/invalid-value`. */
export async function chosenKind({
  env,
  places,
}: Pick<SecretsSurroundings, 'env' | 'places'>): Promise<ProviderKind | undefined> {
  const named = env['SKEP_SECRETS_PROVIDER'] ?? '';
  return named === '' ? (await loadAppConfig(places)).secretsProvider : checkKind(named);
}

export function checkKind(kind: string): ProviderKind {
  if (isProviderKind(kind)) return kind;
  throw new SkepError('usage/invalid-value', {
    message: `invalid secrets provider type: ${JSON.stringify(kind)}`,
    hint: `valid types: ${Object.keys(PROVIDERS).join(', ')}`,
  });
}

/** The provider that was chosen. Fails with `secrets/not-set-up` and `secrets/turned-off`. */
export async function openProvider(around: SecretsSurroundings): Promise<SecretsProvider> {
  const kind = await chosenKind(around);
  if (kind === undefined) throw new SkepError('secrets/not-set-up');
  return PROVIDERS[kind].open(around);
}

/**
 * As `openProvider`, for somebody who has a secret to keep: where nothing was chosen yet and the password has a place that
 * lasts, the encrypted store is chosen for good, once it has kept something. Without such a place it stays a decision of
 * the person.
 */
export async function openProviderToKeep(around: SecretsSurroundings): Promise<SecretsProvider> {
  if ((await chosenKind(around)) !== undefined || !(await hasPlaceForPassword(around))) {
    return openProvider(around);
  }
  const provider = PROVIDERS.encrypted.open(around);
  return {
    ...provider,
    async change(edit) {
      await provider.change?.(edit);
      await chooseProvider('encrypted', around);
    },
  };
}

export async function chooseProvider(
  kind: ProviderKind,
  { places }: Pick<SecretsSurroundings, 'places'>,
): Promise<void> {
  await updateAppConfig(places, { 'secrets.provider_type': kind });
}

async function hasPlaceForPassword(around: SecretsSurroundings): Promise<boolean> {
  if (isPasswordGiven(around)) return true;
  return lastingKeyring(keyringsOf(around), accountOf(around)).then(
    () => true,
    () => false,
  );
}

/**
 * One secret: what the provider has, or else `SKEP_SECRET_<NAME>` of the environment. What fails otherwise is not taken for
 * missing. Undefined where nobody has it.
 */
export async function findSecret(
  provider: SecretsProvider,
  name: string,
  { env }: Pick<SecretsSurroundings, 'env'>,
): Promise<string | undefined> {
  const found = await provider.get(name);
  if (found !== undefined || isSystemName(name)) return found;
  return env['SKEP_DISABLE_ENV_FALLBACK'] === 'true' ? undefined : env[VARIABLE + name] || undefined;
}
