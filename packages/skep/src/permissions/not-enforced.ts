import { foreignNetwork, type PermissionProfile } from './profile.ts';

interface Enforcing {
  /** A gateway enforces the hosts and ports (`--isolate-network`). */
  readonly isolated?: boolean | undefined;
}

/** What a profile says or suggests and nothing keeps, a phrase each. Empty for a workload without a network. */
export function notEnforced(profile: PermissionProfile, { isolated = false }: Enforcing): readonly string[] {
  const { network, privileged = false } = profile;
  if (isolated) {
    return privileged ? ['it runs privileged, so it can undo the isolation of its network'] : [];
  }
  if (network?.mode === 'none') return [];
  const { allow_host = [], allow_port = [], insecure_allow_all = false } = network?.outbound ?? {};
  const listed =
    (!insecure_allow_all && allow_host.length + allow_port.length > 0) ||
    (network?.inbound?.allow_host ?? []).length > 0;
  return [...(listed ? [unkept(profile)] : []), ...(network?.mode === 'host' ? [MACHINES] : [])];
}

function unkept(profile: PermissionProfile): string {
  const open = 'the hosts and ports of its permission profile are not enforced, so it can connect to any';
  return foreignNetwork(profile) === undefined
    ? `${open}; --isolate-network enforces them, skep config set isolation on does for every run`
    : open;
}

const MACHINES =
  'it uses the network of this machine, so it reaches what listens on 127.0.0.1 here, the proxies of other servers among it';
