import type { Decision } from '../egress/decision.ts';
import { hostProblem, isGatewayHost, isNeverReached, spelledHost } from '../permissions/host-rule.ts';
import type { PathRight } from '../permissions/change-paths.ts';
import { profileMounts, profileVolumes, withMounts, type PermissionProfile } from '../permissions/profile.ts';
import type { SeenFiles } from '../runtime/runtime.ts';

/** Everything that was seen of a workload that learned. */
export interface Learned {
  readonly name: string;
  /** What it ran with; its mounts are absolute. */
  readonly profile: PermissionProfile;
  readonly decisions: readonly Decision[];
  readonly files: SeenFiles;
  /** Paths of this machine that it lacked and may be given. */
  readonly lacking: readonly PathRight[];
}

/** Programs that ask for a name alone mean HTTPS more often than anything else. */
const USUAL_PORT = 443;

/**
 * The least permission profile that allows what was seen: the very hosts that it reached and their ports, and of its mounts
 * those that it looked at, writable where it wrote, and its volumes. Where not every use of a file was seen, mounts stay as they are. Pure.
 */
export function proposedProfile({ name, profile, decisions, files, lacking }: Learned): PermissionProfile {
  const mounts = profileMounts(profile, '/').flatMap((mount) => {
    if (!files.complete) return [mount];
    const seen = files.paths.get(mount.target);
    return seen === undefined ? [] : [{ ...mount, readOnly: mount.readOnly || !seen.changes }];
  });
  const taken = new Set([...mounts, ...profileVolumes(profile)].map(({ target }) => target));
  const added = lacking
    .filter(({ path }) => !taken.has(path))
    .map(({ path, readOnly = true }) => ({ source: path, target: path, readOnly }));
  const { network, privileged } = profile;
  const { allow_host, allow_port } = reached(decisions);
  const outbound = { insecure_allow_all: false, allow_host, allow_port };
  return {
    name,
    ...withMounts({}, [...mounts, ...profileVolumes(profile), ...added]),
    ...(privileged === undefined ? {} : { privileged }),
    network: {
      ...(network?.mode === undefined ? {} : { mode: network.mode }),
      outbound,
      ...(network?.inbound === undefined ? {} : { inbound: network.inbound }),
    },
  };
}

function reached(decisions: readonly Decision[]): { allow_host: string[]; allow_port: number[] } {
  const allowed = decisions.filter((one) => one.decision === 'allowed' && isProposed(one));
  const hosts = [...new Set(allowed.map(({ host }) => spelledHost(host)))].toSorted();
  const ports = [...new Set(allowed.flatMap(({ port }) => (port === undefined ? [] : [port])))];
  const usual = hosts.length > 0 && ports.length === 0 ? [USUAL_PORT] : ports;
  return { allow_host: hosts, allow_port: usual.toSorted((one, other) => one - other) };
}

/** Hosts come from a server: only one that a profile can name is proposed. */
export function isProposed({ host, via }: Pick<Decision, 'host' | 'via'>): boolean {
  if (via === 'ingress' || host.startsWith('.') || hostProblem(host) !== undefined) return false;
  return !isNeverReached(host) && !isGatewayHost(host);
}
