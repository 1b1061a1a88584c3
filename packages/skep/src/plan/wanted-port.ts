import type { LocalPlan } from '@skep/core/catalog/run-plan.ts';
import type { RunValues } from '../settings/run-settings.ts';

export interface WantedPort {
  /** 0 or absent: any free one. */
  readonly wanted?: number;
  /** How to choose another, where the person has not asked for this one. */
  readonly hint?: string;
}

/** The proxy's port: the flag, else the catalogue's for a server that is reached over HTTP (docs/behaviour/run.md#ports). */
export function wantedPort(
  { proxyPort, transport }: Pick<RunValues, 'proxyPort' | 'transport'>,
  plan: LocalPlan | undefined,
): WantedPort {
  if (proxyPort !== undefined) return { wanted: proxyPort };
  if (plan?.proxyPort === undefined || (transport ?? plan.transport) === 'stdio') return {};
  return {
    wanted: plan.proxyPort,
    hint: 'it is the one that the catalogue names; choose another with --proxy-port, or any free one with --proxy-port 0',
  };
}
