import type { PermissionProfile } from './profile.ts';

/**
 * What a profile says or suggests and nothing keeps, a phrase each. `sharesNetwork` is why workloads have no network of
 * their own on their runtime (see `Runtime.sharesNetwork`). Empty for a workload without a network.
 */
export function notEnforced(
  { network }: PermissionProfile,
  { sharesNetwork }: { readonly sharesNetwork?: string | undefined },
): readonly string[] {
  const mode = network?.mode ?? '';
  if (mode === 'none') return [];
  const { allow_host = [], allow_port = [], insecure_allow_all = false } = network?.outbound ?? {};
  const listed =
    (!insecure_allow_all && allow_host.length + allow_port.length > 0) ||
    (network?.inbound?.allow_host ?? []).length > 0;
  return [
    ...(listed
      ? ['the hosts and ports of its permission profile are not enforced yet, so it can connect to any']
      : []),
    ...openNetwork(mode, sharesNetwork),
  ];
}

const REACH = 'so it reaches what listens on 127.0.0.1 here, the proxies of other servers among it';

function openNetwork(mode: string, sharesNetwork: string | undefined): readonly string[] {
  if (mode === 'host') return [`it uses the network of this machine, ${REACH}`];
  if (sharesNetwork === undefined) return [];
  return [`it uses the network of this machine because ${sharesNetwork}, ${REACH}`];
}
