import { profileMounts, type PermissionProfile } from './profile.ts';

/** Modes that give a workload no more than a network of its own. */
const PLAIN_MODES: ReadonlySet<string> = new Set(['', 'default', 'bridge', 'none']);

/**
 * What a profile gives away of this machine, a phrase each, for the person who must agree: directories and files of the
 * host, privileged mode, and the network of the host or of other workloads. Empty for a workload that keeps to itself.
 */
export function grantsOf(profile: PermissionProfile, cwd: string): readonly string[] {
  const mounts = profileMounts(profile, cwd).map(
    ({ source, target, readOnly }) =>
      `${readOnly ? 'read' : 'write'} "${source}"${source === target ? '' : ` (as "${target}")`}`,
  );
  const mode = profile.network?.mode ?? '';
  return [
    ...mounts,
    ...(profile.privileged === true ? ['run privileged, with all rights of the engine'] : []),
    ...(PLAIN_MODES.has(mode) ? [] : [`use the network "${mode}"`]),
  ];
}
