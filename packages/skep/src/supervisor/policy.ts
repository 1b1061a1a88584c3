import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { RunConfig } from '../run-config/run-config.ts';

/** The parts of a workload that are decided before anything is pulled or built for it. */
export type Wanted = Pick<
  RunConfig,
  'name' | 'group' | 'image' | 'package' | 'registry_server_name' | 'permission_profile' | 'isolate_network'
>;

/**
 * What may stop a workload that its person wants (decision 0315). Each answers with why it may not be, for people, or with
 * undefined. One that fails lets nothing through.
 */
export interface PolicyGate {
  /** Asked before anything is pulled or built, and again, with all of the configuration, before that is saved. */
  readonly mayCreate: (wanted: Wanted & Partial<RunConfig>) => Promise<string | undefined>;
  /** Asked before every start, also after a crash or a reboot; not for a workload that still runs. */
  readonly mayStart: (config: RunConfig) => Promise<string | undefined>;
}

/** Fails with `policy/create-blocked`; without a gate everything is allowed. */
export async function checkCreate(
  policy: PolicyGate | undefined,
  wanted: Wanted & Partial<RunConfig>,
): Promise<void> {
  const why = await policy?.mayCreate(wanted);
  if (why === undefined) return;
  throw new SkepError('policy/create-blocked', { message: `server creation blocked by policy: ${why}` });
}

/** Fails with `policy/start-blocked`, in which `whyStopped` finds the reason. */
export async function checkStart(policy: PolicyGate | undefined, config: RunConfig): Promise<void> {
  const why = await policy?.mayStart(config);
  if (why === undefined) return;
  throw new SkepError('policy/start-blocked', {
    message: `server restart blocked by policy: ${why}`,
    detail: { why },
  });
}

/** Why the policy gate has refused a start; undefined for what failed otherwise. */
export function whyStopped(error: unknown): string | undefined {
  if (!hasCode(error, 'policy/start-blocked')) return undefined;
  return String(error.detail['why']);
}
