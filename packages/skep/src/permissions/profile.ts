import { resolve } from 'node:path';
import { readJson } from '@skep/core/files/read-limited.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { hostProblem } from './host-rule.ts';
import {
  isMount,
  isNamedVolume,
  parseMount,
  sourceText,
  type Declared,
  type Mount,
  type NamedVolume,
} from './mounts.ts';

const MAX_PROFILE_BYTES = 1024 * 1024;
/** As much of a wrong host as a message shows. */
const MAX_SHOWN = 100;

const host: shape.Shape<string> = (value, fail) => {
  const read = shape.text(value, fail);
  const problem = hostProblem(read);
  return problem === undefined
    ? read
    : fail(`${JSON.stringify(printable(read).slice(0, MAX_SHOWN))} ${problem}`);
};
const hosts = shape.optional(shape.listOf(host));

/** A permission profile: mounts, network and privilege. Members it does not know are refused: one could forbid something. */
export const profileShape = shape.exactly({
  name: shape.optional(shape.text),
  read: shape.optional(shape.listOf(shape.text)),
  write: shape.optional(shape.listOf(shape.text)),
  privileged: shape.optional(shape.bool),
  network: shape.optional(
    shape.exactly({
      mode: shape.optional(shape.text),
      outbound: shape.optional(
        shape.exactly({
          insecure_allow_all: shape.optional(shape.bool),
          allow_host: hosts,
          allow_port: shape.optional(shape.listOf(shape.wholeNumber(1, 65_535))),
        }),
      ),
      inbound: shape.optional(shape.exactly({ allow_host: hosts })),
    }),
  ),
});

export type PermissionProfile = shape.ShapeType<typeof profileShape>;

const NONE: PermissionProfile = { name: 'none', network: { outbound: { insecure_allow_all: false } } };
const BUILTIN: ReadonlyMap<string, PermissionProfile> = new Map([
  ['none', NONE],
  // What older profiles called it.
  ['stdio', NONE],
  ['network', { name: 'network', network: { outbound: { insecure_allow_all: true } } }],
]);

/** The built-in profile of that name, or undefined. */
export function builtinProfile(name: string): PermissionProfile | undefined {
  return BUILTIN.get(name);
}

/** Checks a profile of any origin; `where` names it in the error (`run/invalid-profile`). */
export function decodeProfile(value: unknown, where: string, cwd: string): PermissionProfile {
  const profile = profileShape(value, (why, ...path) => {
    throw new SkepError('run/invalid-profile', {
      message: `${where} is not a permission profile: ${path.length === 0 ? '' : `"${path.join('.')}": `}${why}`,
    });
  });
  // Parsing them now means that a bad mount fails before anything is built or created.
  declaredMounts(profile, cwd);
  return profile;
}

/** `--permission-profile`: a built-in name, whatever lies in `cwd`, or the path of a JSON file. */
export async function loadProfile(nameOrPath: string, cwd: string): Promise<PermissionProfile> {
  const builtin = builtinProfile(nameOrPath);
  if (builtin) return builtin;
  const path = resolve(cwd, nameOrPath);
  const value = await readJson(path, { maxBytes: MAX_PROFILE_BYTES, what: 'permission profile' });
  return decodeProfile(value, `"${path}"`, cwd);
}

/** The mounts of a profile that are paths of this machine; see `declaredMounts`. */
export function profileMounts(profile: PermissionProfile, cwd: string): readonly Mount[] {
  return declaredMounts(profile, cwd).filter(isMount);
}

/** The volumes of a profile that it shares with others. */
export function profileVolumes(profile: PermissionProfile): readonly NamedVolume[] {
  return declaredMounts(profile, '/').filter(isNamedVolume);
}

/**
 * All that a profile mounts: `read` read-only, `write` writable; a target in both is writable.
 * Relative host paths are resolved against `cwd`.
 */
export function declaredMounts(profile: PermissionProfile, cwd: string): readonly Declared[] {
  const { read = [], write = [] } = profile;
  const mounts = [
    ...read.map((declared) => parseMount(declared, true, cwd)),
    ...write.map((declared) => parseMount(declared, false, cwd)),
  ];
  return [...new Map(mounts.map((mount) => [mount.target, mount])).values()];
}

/** The profile with these mounts and volumes instead of its own. */
export function withMounts(profile: PermissionProfile, mounts: readonly Declared[]): PermissionProfile {
  const declared = (readOnly: boolean): string[] =>
    mounts
      .filter((mount) => mount.readOnly === readOnly)
      .map((mount) => `${sourceText(mount)}:${mount.target}`);
  return { ...profile, read: declared(true), write: declared(false) };
}

/** The profile with its mounts absolute and with these volumes added; a repeated target is an error. */
export function withVolumes(
  profile: PermissionProfile,
  volumes: readonly Declared[],
  cwd: string,
): PermissionProfile {
  const mounts = [...declaredMounts(profile, cwd)];
  for (const volume of volumes) {
    const taken = mounts.find((mount) => mount.target === volume.target);
    if (taken) {
      throw new SkepError('run/invalid-volume', {
        message: `two mounts for "${volume.target}": "${sourceText(taken)}" and "${sourceText(volume)}"`,
        hint: 'give each container path once, in --volume or in the permission profile',
      });
    }
    mounts.push(volume);
  }
  return withMounts(profile, mounts);
}

export interface NetworkChoice {
  /** `--network`. */
  readonly network?: string | undefined;
  /** A gateway enforces what the profile allows. */
  readonly isolated: boolean;
}

/**
 * The profile with the network mode it means: `--network`, else its own, else, without isolation, none at all where it
 * allows no connection. A profile that allows nothing and is not enforced would be a promise nobody keeps: the switch
 * itself, not a filter, keeps it so (decision 0142).
 */
export function withNetworkMode(
  profile: PermissionProfile,
  { network, isolated }: NetworkChoice,
): PermissionProfile {
  // Other tools write an empty text for "not given".
  const mode = network ?? (profile.network?.mode || (isolated ? undefined : impliedMode(profile)));
  return mode === undefined ? profile : { ...profile, network: { ...profile.network, mode } };
}

function impliedMode(profile: PermissionProfile): string | undefined {
  const outbound = profile.network?.outbound;
  if (outbound === undefined || outbound.insecure_allow_all === true) return undefined;
  const listed = (outbound.allow_host?.length ?? 0) + (outbound.allow_port?.length ?? 0);
  return listed === 0 ? 'none' : undefined;
}

/** Modes that give a workload no more than a network of its own. */
const PLAIN_MODES: ReadonlySet<string> = new Set(['', 'default', 'bridge', 'none']);

/** The network of the machine or of others that a profile names; undefined for one that can be isolated. */
export function foreignNetwork({ network }: PermissionProfile): string | undefined {
  const mode = network?.mode ?? '';
  return PLAIN_MODES.has(mode) ? undefined : mode;
}
