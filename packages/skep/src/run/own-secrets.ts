import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Context } from '../cli/context.ts';
import { findRunConfig } from '../run-config/file.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { REMOTE_BEARER_TOKEN, REMOTE_CLIENT_SECRET } from '../secrets/reference.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';

/** A workload as it is saved, and what is not. */
export interface Stored {
  readonly config: RunConfig;
  readonly secrets: SecretEnv;
  /** References to what was stored now. */
  readonly references: readonly string[];
}

/**
 * The values of its secret variables go where secrets are kept; where that cannot be, the person is told. Fails with
 * `secrets/invalid-value` for what a server elsewhere is signed in to with (decision 0352).
 */
export async function storeOwnSecrets(config: RunConfig, context: Context): Promise<Stored> {
  const { name, secret_env } = config;
  const isSecret = ([variable, value]: [string, string]): boolean =>
    secret_env.includes(variable) && value !== '';
  const values = Object.entries(config.env_vars);
  const secrets = Object.fromEntries(values.filter(isSecret));
  if (Object.keys(secrets).length === 0) return { config, secrets: {}, references: [] };
  const { keepOwned } = await import('../secrets/workload-secrets.ts');
  const kept = await keepOwned(name, secrets, context);
  if ('why' in kept) {
    const ofSignIn = [REMOTE_BEARER_TOKEN, REMOTE_CLIENT_SECRET].find((target) => target in secrets);
    if (ofSignIn !== undefined)
      throw new SkepError('secrets/invalid-value', {
        message: `${ofSignIn} cannot be sealed: ${kept.why}`,
        hint: 'set a store up with skep secret setup, or keep it in a file of your own',
      });
    const variables = Object.keys(secrets).join(', ');
    context.terminal.err(
      `Warning: ${printable(`${name}: ${variables} is kept in clear in its run configuration: ${kept.why}`)}\n`,
    );
    return { config, secrets: {}, references: [] };
  }
  const { references } = kept;
  const env_vars = Object.fromEntries(values.filter((one) => !isSecret(one)));
  const all = [...(config.secrets ?? []), ...references];
  return { config: { ...config, env_vars, secret_env: [], secrets: all }, secrets, references };
}

/** Deletes what was stored for a workload and is not used by what is saved of it now. */
export async function forgetUnused(
  name: string,
  references: readonly string[],
  context: Context,
): Promise<void> {
  if (references.length === 0) return;
  const used = (await findRunConfig(context.places, name))?.secrets ?? [];
  const { forgetOwned } = await import('../secrets/workload-secrets.ts');
  await forgetOwned(
    name,
    references.filter((one) => !used.includes(one)),
    context,
  );
}
