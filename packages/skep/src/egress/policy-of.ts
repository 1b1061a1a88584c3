import { spelledHost } from '../permissions/host-rule.ts';
import type { PermissionProfile } from '../permissions/profile.ts';
import { allowedHosts } from '../permissions/allowed-hosts.ts';
import type { EgressPolicy } from './policy.ts';

/** What of a run configuration decides what its gateway lets through. */
export interface Isolated {
  readonly name: string;
  readonly permission_profile: PermissionProfile;
  readonly allow_runtime_gateway?: boolean | undefined;
}

/** What the gateway of an isolated workload enforces (docs/behaviour/run.md#isolation). Pure. */
export function egressPolicy({
  name,
  permission_profile,
  allow_runtime_gateway = false,
}: Isolated): EgressPolicy {
  const { all: allowAll, hosts, ports } = allowedHosts(permission_profile);
  const inbound = permission_profile.network?.inbound?.allow_host ?? [];
  return {
    workload: name,
    allowAll,
    hosts,
    ports,
    inbound: [...new Set(inbound.map(spelledHost))],
    runtimeGateway: allow_runtime_gateway && permission_profile.network?.mode !== 'none',
  };
}
