import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Changed } from './change-hosts.ts';
import { parseVolume, sourceText, type Declared } from './mounts.ts';
import { declaredMounts, withMounts, type PermissionProfile } from './profile.ts';
import type { Right } from './right.ts';

/** What of a run configuration says what of this machine its server sees. */
export interface Mounted {
  readonly name: string;
  readonly permission_profile: PermissionProfile;
  readonly data_paths?: readonly string[] | undefined;
  /** Repeats what was given with `--volume`. */
  readonly volumes: readonly string[];
  readonly mount_sources?: Readonly<Record<string, string>> | undefined;
}

export type PathRight = Extract<Right, { readonly is: 'path' }>;

/**
 * Shows a workload a path of this machine, in the same place, read-only unless the person says otherwise. What is mounted
 * elsewhere stays there. Fails with `usage/conflict` where the place inside is taken.
 */
export function permitPath<Config extends Mounted>(config: Config, right: PathRight): Changed<Config> {
  const { name } = config;
  const { path, readOnly = true } = right;
  const mounts = declaredMounts(config.permission_profile, '/');
  const known = mounts.filter((mount) => sourceText(mount) === path);
  const isSame =
    known.length > 0 && known.every((mount) => mount.readOnly === readOnly || right.readOnly === undefined);
  const above = mounts.find(
    (mount) =>
      sourceText(mount) === mount.target && isBelow(path, mount.target) && (readOnly || !mount.readOnly),
  );
  if (isSame || above !== undefined) {
    const what = known[0] ?? above;
    return { config, notes: [`${name} may ${verb(what)} ${path} already`] };
  }
  if (known.length > 0) {
    const changed = mounts.map((mount) => (sourceText(mount) === path ? { ...mount, readOnly } : mount));
    return { config: remounted(config, changed), notes: [] };
  }
  const data = (config.data_paths ?? []).find(
    (one) => one === path || isBelow(path, one) || isBelow(one, path),
  );
  const taken = mounts.find(({ target }) => target === path);
  if (taken !== undefined || data !== undefined) {
    const what =
      taken === undefined ? `keeps its data in ${data ?? ''}` : `has ${sourceText(taken)} at ${path}`;
    throw new SkepError('usage/conflict', {
      message: `${name} ${what} already`,
      hint: `mount it in another place: skep rm ${name}, which keeps its data, and skep run --volume ${path}:/PLACE`,
    });
  }
  const added = { source: path, target: path, readOnly };
  return { config: remounted(config, [...mounts, added]), notes: [] };
}

/** Takes a path, of this machine or inside, from what a workload sees. Fails with `usage/conflict` for a part of one. */
export function denyPath<Config extends Mounted>(config: Config, { path }: PathRight): Changed<Config> {
  const { name } = config;
  const mounts = declaredMounts(config.permission_profile, '/');
  const left = mounts.filter((mount) => sourceText(mount) !== path && mount.target !== path);
  const above = left.find((mount) => isBelow(path, sourceText(mount)));
  if (above !== undefined) {
    throw new SkepError('usage/conflict', {
      message: `${name} sees ${path} as a part of ${sourceText(above)}`,
      hint: `deny all of it with skep deny ${name} ${sourceText(above)}`,
    });
  }
  if (left.length === mounts.length) return { config, notes: [`${name} does not see ${path} anyway`] };
  return { config: remounted(config, left), notes: [] };
}

const verb = (mount: Declared | undefined): string => (mount?.readOnly === false ? 'write' : 'read');

const isBelow = (path: string, directory: string): boolean =>
  path.startsWith(directory.endsWith('/') ? directory : `${directory}/`);

/** With these mounts instead of its own, and no note of others. */
function remounted<Config extends Mounted>(config: Config, mounts: readonly Declared[]): Config {
  const isThere = (note: string): boolean => {
    const { target, readOnly } = parseVolume(note, '/');
    return mounts.some((mount) => mount.target === target && mount.readOnly === readOnly);
  };
  const sources = new Set(mounts.map(sourceText));
  const known = Object.entries(config.mount_sources ?? {}).filter(([source]) => sources.has(source));
  return {
    ...config,
    permission_profile: withMounts(config.permission_profile, mounts),
    volumes: config.volumes.filter(isThere),
    ...(config.mount_sources === undefined ? {} : { mount_sources: Object.fromEntries(known) }),
  };
}
