import { isPrivateHost } from './host-rule.ts';
import { foreignNetwork, profileMounts, profileVolumes, type PermissionProfile } from './profile.ts';
import { allowedHosts } from './allowed-hosts.ts';

/**
 * What a profile gives away of this machine, a phrase each, for the person who must agree: directories and files of the
 * host, volumes of other servers, privileged mode, and the network of the host or of other workloads; for an isolated one also the private hosts that
 * only its profile opens. Empty for a workload that keeps to itself.
 */
export function grantsOf(profile: PermissionProfile, cwd: string, isolated = false): readonly string[] {
  const mounts = profileMounts(profile, cwd).map(
    ({ source, target, readOnly }) =>
      `${readOnly ? 'read' : 'write'} "${source}"${source === target ? '' : ` (as "${target}")`}`,
  );
  const volumes = profileVolumes(profile).map(
    ({ volume, target, readOnly }) =>
      `${readOnly ? 'read' : 'write'} the volume "${volume}" that servers share (as "${target}")`,
  );
  const mode = foreignNetwork(profile);
  const hosts = isolated ? allowedHosts(profile).hosts.filter(isPrivateHost) : [];
  return [
    ...mounts,
    ...volumes,
    ...(profile.privileged === true ? ['run privileged, with all rights of the engine'] : []),
    ...(mode === undefined ? [] : [`use the network "${mode}"`]),
    ...hosts.map((one) => `connect to the private host "${one}"`),
  ];
}
