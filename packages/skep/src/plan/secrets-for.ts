import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { Surroundings } from './plan.ts';

/** The values of a workload's secrets, looked up before anything is made. Nothing is loaded where there are none. */
export async function secretsFor(references: readonly string[], around: Surroundings): Promise<SecretEnv> {
  if (references.length === 0) return {};
  const { resolveSecrets } = await import('../secrets/workload-secrets.ts');
  return resolveSecrets(references, around);
}
