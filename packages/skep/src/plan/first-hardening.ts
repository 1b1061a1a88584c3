import { otherUser } from '../permissions/confined-user.ts';
import type { Hardening } from '../permissions/hardening.ts';
import { profileMounts, profileVolumes } from '../permissions/profile.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Prepared } from '../runtime/runtime.ts';

/** A workload of what was just prepared, with how hard its container is to be held at first; what was known is forgotten. */
export async function withHardening(config: RunConfig, prepared: Prepared): Promise<RunConfig> {
  const { hardening: _earlier, ...rest } = config;
  const hardening = await firstHardening(rest, prepared);
  return hardening === undefined ? rest : { ...rest, hardening };
}

/**
 * What is tried first, undefined where nothing is: where nobody waits for the first answer nobody would notice that it does
 * not come, and what Skep makes of a package belongs to root, but for what its server may write.
 */
async function firstHardening(config: RunConfig, prepared: Prepared): Promise<Hardening | undefined> {
  const { permission_profile: profile, read_only, no_check = false } = config;
  if (prepared.asRoot === undefined || read_only === false || no_check) return undefined;
  if (profile.privileged === true) return undefined;
  // Volumes belong to whom the image says.
  const volumes = [...(config.data_paths ?? []), ...(prepared.volumes ?? [])];
  if (!prepared.asRoot || volumes.length > 0 || config.sandbox_user !== undefined) return 'read-only';
  return (await mayBeOther(config)) ? 'other-user' : 'read-only';
}

/** How hard the container of a workload is to be held whose mounts have changed: another user has to be able to use them all. */
export async function fitHardening(config: RunConfig): Promise<Pick<RunConfig, 'hardening'>> {
  const { hardening } = config;
  if (hardening === undefined) return {};
  return { hardening: hardening === 'other-user' && !(await mayBeOther(config)) ? 'read-only' : hardening };
}

async function mayBeOther({ name, permission_profile: profile, runtime }: RunConfig): Promise<boolean> {
  // Several servers write there, each as whom its image says.
  if (profileVolumes(profile).length > 0) return false;
  const mounts = profileMounts(profile, '/');
  if (mounts.length === 0) return true;
  return runtime?.maps_users !== true && (await otherUser(name, mounts)) !== undefined;
}
