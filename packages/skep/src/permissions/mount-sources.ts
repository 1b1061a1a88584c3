import { realpath } from 'node:fs/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Mount } from './mount-declaration.ts';

/** Real path by the path that was granted. */
export type MountSources = Readonly<Record<string, string>>;

/**
 * Where the sources of mounts lead to, links followed. What this user does not find here, as with a
 * distant engine, is left out.
 */
export async function mountSources(mounts: readonly Mount[]): Promise<MountSources> {
  const real = await Promise.all(
    mounts.map(async ({ source }) => [source, await realSource(source)] as const),
  );
  return Object.fromEntries(real.filter((pair): pair is readonly [string, string] => pair[1] !== undefined));
}

/**
 * Refuses a start when the source of a mount leads elsewhere than on the day it was granted: whoever may write the
 * directory above, a server among them, could have put a link to the user's keys in its place. Fails with
 * `run/not-granted`.
 */
export async function checkMountSources(
  name: string,
  mounts: readonly Mount[],
  granted: MountSources,
): Promise<void> {
  for (const { source } of mounts) {
    const before = Object.hasOwn(granted, source) ? granted[source] : undefined;
    if (before === undefined) continue;
    const now = await realSource(source);
    if (now === before) continue;
    throw new SkepError('run/not-granted', {
      message:
        now === undefined
          ? `mount source "${source}" of "${name}" is not to be found any more`
          : `mount source "${source}" of "${name}" leads to "${now}" now, and to "${before}" when it was granted`,
      hint: `put back what was there; or, if it is to be mounted as it is now, remove the workload with skep rm ${name} and run it again`,
    });
  }
}

/** Undefined where the user who runs Skep finds nothing, at the end of a link too. */
const realSource = (source: string): Promise<string | undefined> => realpath(source).catch(() => undefined);
