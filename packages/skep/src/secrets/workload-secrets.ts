import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { findSecret, openProvider, openProviderToKeep } from './open-provider.ts';
import type { SecretsSurroundings } from './provider.ts';
import { checkName, formatReference, isOwnedBy, ownedName, parseReference } from './reference.ts';
import { checkFitsVariable, MAX_SECRET_BYTES } from './secret-value.ts';

/** Values by variable. They are in memory, and where the server runs, and nowhere else. */
export type SecretEnv = Readonly<Record<string, string>>;

/**
 * The values that references stand for. Fails with `secrets/not-found` naming everything that is missing, and as the
 * provider does.
 */
export async function resolveSecrets(
  references: readonly string[],
  around: SecretsSurroundings,
): Promise<SecretEnv> {
  if (references.length === 0) return {};
  const provider = await openProvider(around);
  const values = new Map<string, string>();
  const missing: string[] = [];
  for (const { name, target } of references.map(parseReference)) {
    const value = await findSecret(provider, name, around);
    if (value === undefined) missing.push(name);
    else values.set(target, checkFitsVariable(value, name, target));
  }
  if (missing.length === 0) return Object.fromEntries(values);
  const names = missing.map((name) => `"${printable(name)}"`).join(', ');
  throw new SkepError('secrets/not-found', {
    message: `secret${missing.length > 1 ? 's' : ''} not found: ${names}`,
    hint: `store ${missing.length > 1 ? 'them' : 'it'} with skep secret set ${printable(missing[0] ?? '')}`,
  });
}

/** What came of keeping values: references to them, or why they cannot be kept. */
export type KeptSecrets = { readonly references: readonly string[] } | { readonly why: string };

/** Keeps the values of a workload's own variables until `forgetOwned`. */
export async function keepOwned(
  workload: string,
  values: SecretEnv,
  around: SecretsSurroundings,
): Promise<KeptSecrets> {
  const large = Object.values(values).find((value) => Buffer.byteLength(value) > MAX_SECRET_BYTES);
  if (large !== undefined) return { why: 'it is too large for the secrets store' };
  try {
    const { change, kind } = await openProviderToKeep(around);
    if (!change) return { why: `the ${kind} secrets provider only reads` };
    const owned = Object.keys(values).map((target) => ({
      name: checkName(ownedName(workload, target)),
      target,
    }));
    await change((secrets) => {
      for (const { name, target } of owned) secrets.set(name, values[target] ?? '');
    });
    return { references: owned.map(formatReference) };
  } catch (error) {
    // Nothing is kept by halves: what is told is what stands in the way.
    if (hasCode(error, 'secrets/not-set-up'))
      return { why: 'no secrets store is set up (skep secret setup)' };
    if (error instanceof SkepError && error.code.startsWith('secrets/')) return { why: error.message };
    throw error;
  }
}

/** Deletes what is kept for one workload alone. Nobody is asked for it. */
export async function forgetOwned(
  workload: string,
  references: readonly string[],
  { ask: _nobody, ...around }: SecretsSurroundings,
): Promise<void> {
  const owned = references
    .map((text) => parseReference(text).name)
    .filter((name) => isOwnedBy(workload, name));
  if (owned.length === 0) return;
  const { change } = await openProvider(around);
  await change?.((secrets) => {
    for (const name of owned) secrets.delete(name);
  });
}
