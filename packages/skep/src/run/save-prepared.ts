import type { Places } from '@skep/core/files/places.ts';
import { mountSources } from '../permissions/mount-sources.ts';
import { profileMounts } from '../permissions/profile.ts';
import { saveRunConfig } from '../run-config/file.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { isImageUsed } from '../supervisor/remove-workload.ts';

/**
 * Saves the run config of a prepared workload, with where its mounts lead to on this machine today; when that fails, what
 * was prepared for it is removed again.
 */
export async function savePrepared(config: RunConfig, runtime: Runtime, places: Places): Promise<void> {
  try {
    const mount_sources = await mountSources(profileMounts(config.permission_profile, '/'));
    await saveRunConfig(places, { ...config, mount_sources });
  } catch (error) {
    const unused = config.image_is_ours && !(await isImageUsed(config.image, config.name, places));
    if (unused) await runtime.discard(config.image);
    throw error;
  }
}
