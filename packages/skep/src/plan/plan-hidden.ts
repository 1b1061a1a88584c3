import { printable } from '@skep/core/terminal/printable.ts';
import { findHidden, type HiddenPath, type HideRequest } from '../permissions/hidden-paths.ts';
import { profileMounts } from '../permissions/profile.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Surroundings } from './plan.ts';

/**
 * Looks for what ignore files hide of these mounts, so that what cannot be hidden fails where the person is, and prints it
 * where that is asked for (`--print-resolved-overlays`). Fails as `findHidden` does.
 */
export async function planHidden(
  asked: Omit<HideRequest, 'file'> & { readonly print: boolean },
  { places, terminal }: { readonly places: Pick<Surroundings['places'], 'ignoreFile'>; readonly terminal: Surroundings['terminal'] }, // prettier-ignore
): Promise<void> {
  const hidden = await findHidden({ ...asked, file: places.ignoreFile });
  if (asked.print) terminal.err(overlaysText(hidden));
}

/** What a run configuration says of it; relative sources start from `cwd`. */
export function hiddenOf(
  { ignore_config: ignore, permission_profile: profile }: RunConfig,
  cwd: string,
): Parameters<typeof planHidden>[0] {
  const mounts = profileMounts(profile, cwd);
  return { globally: ignore?.load_global ?? true, print: ignore?.print_overlays ?? false, mounts };
}

/** A header for each mount of which something is hidden, and a line for each path: inside, and on the host. */
function overlaysText(hidden: readonly HiddenPath[]): string {
  const lines = [...Map.groupBy(hidden, ({ mount }) => mount)].flatMap(([mount, of]) => [
    printable(`Overlays of ${mount.source} (mounted at ${mount.target}):`),
    ...of.map((one) => `  ${printable(`${one.target} ${SHOWN[one.shows]} (${one.source})`)}`),
  ]);
  return lines.map((line) => `${line}\n`).join('');
}

const SHOWN: Readonly<Record<HiddenPath['shows'], string>> = {
  'empty-file': 'is an empty file',
  'empty-directory': 'is an empty directory',
  itself: 'cannot be changed',
};
