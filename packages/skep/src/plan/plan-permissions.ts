import type { ExtensionPermissions } from '@skep/core/catalog/publisher-extension.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { grantsOf } from '../permissions/grants.ts';
import {
  decodeProfile,
  loadProfile,
  declaredMounts,
  withMounts,
  withVolumes,
  withNetworkMode,
  foreignNetwork,
  type PermissionProfile,
} from '../permissions/profile.ts';
import type { Surroundings } from './plan.ts';
import type { Declared } from '../permissions/mounts.ts';

export interface PermissionInputs {
  /** `--permission-profile`, read. */
  readonly flag: PermissionProfile | undefined;
  readonly catalogue: ExtensionPermissions | undefined;
  /** Who says so, for the question and the refusal. */
  readonly entry: string;
  /** `--network`. */
  readonly network: string | undefined;
  readonly volumes: readonly Declared[];
  /** A gateway enforces what the profile allows. */
  readonly isolated: boolean;
  readonly cwd: string;
  readonly confirm?: Surroundings['confirm'] | undefined;
}

/**
 * The profile a workload runs with: flag, else catalogue, else `network`; then `--network` and volumes onto it. What a
 * catalogue says about the host is a wish, which fails with `run/not-granted` unless the person agrees.
 */
export async function planPermissions(inputs: PermissionInputs): Promise<PermissionProfile> {
  const { flag, network, volumes, cwd, isolated } = inputs;
  const chosen = flag ?? (await granted(inputs)) ?? (await loadProfile('network', cwd));
  return withVolumes(withNetworkMode(chosen, { network, isolated }), volumes, cwd);
}

/** Only a network of its own can be isolated. Fails with `usage/conflict`; `hint` says where that is put right. */
export function checkIsolation(profile: PermissionProfile, isolated: boolean, hint: string): void {
  const network = isolated ? foreignNetwork(profile) : undefined;
  if (network === undefined) return;
  throw new SkepError('usage/conflict', {
    message: `network isolation cannot be enforced on the network "${network}"`,
    hint,
  });
}

/**
 * HTTP needs a network to be reached over; isolated workloads are reached through their gateway. Fails with
 * `usage/conflict`; `hint` says where that is put right.
 */
export function checkReachable(
  profile: PermissionProfile,
  transport: 'stdio' | 'streamable-http' | 'sse',
  {
    isolated,
    hint = 'add --isolate-network, use --permission-profile network, or --transport stdio if the server speaks it',
  }: { readonly isolated: boolean; readonly hint?: string },
): void {
  if (isolated || transport === 'stdio' || profile.network?.mode !== 'none') return;
  throw new SkepError('usage/conflict', {
    message: 'a server without network cannot be reached over HTTP',
    hint,
  });
}

/** What the catalogue says, after the person agreed to what it says about the host; the flags decide their own part. */
async function granted(inputs: PermissionInputs): Promise<PermissionProfile | undefined> {
  const { catalogue, network, volumes, cwd, entry, confirm, isolated } = inputs;
  const wished = fromCatalogue(catalogue, cwd);
  if (wished === undefined) return undefined;
  const rest = withoutTargets(wished, volumes, cwd);
  // With --network the mode of the catalogue is not used.
  const { mode: _theirs, ...hosts } = rest.network ?? {};
  const open = network === undefined ? rest : { ...rest, network: hosts };
  await requireConsent({
    who: entry,
    grants: grantsOf(open, cwd, isolated),
    hint: 'grant it with --permission-profile FILE, or run it without with --permission-profile network',
    confirm,
  });
  return rest;
}

/** The profile without the mounts that a volume of the command line stands for. */
function withoutTargets(
  profile: PermissionProfile,
  volumes: readonly Declared[],
  cwd: string,
): PermissionProfile {
  const taken = new Set(volumes.map((volume) => volume.target));
  return withMounts(
    profile,
    declaredMounts(profile, cwd).filter((mount) => !taken.has(mount.target)),
  );
}

/** Catalogues write null for absent. */
function fromCatalogue(
  permissions: ExtensionPermissions | undefined,
  cwd: string,
): PermissionProfile | undefined {
  if (permissions === undefined) return undefined;
  const withoutNulls: unknown = JSON.parse(
    JSON.stringify(permissions, (_key, value: unknown) => value ?? undefined),
  );
  return decodeProfile(withoutNulls, 'what the catalogue says about permissions', cwd);
}

interface ConsentRequest {
  /** Who asks for it, for example `"com.example/x" of the catalogue`. */
  readonly who: string;
  /** What it asks for, a phrase each; see `grantsOf`. */
  readonly grants: readonly string[];
  /** How to agree without being asked. */
  readonly hint: string;
  /** Asks a person yes or no; absent where nobody can be asked. */
  readonly confirm: Surroundings['confirm'] | undefined;
}

/** Whoever wrote a catalogue or a file must not decide what it gets of this machine. Fails with `run/not-granted`. */
export async function requireConsent({ who, grants, hint, confirm }: ConsentRequest): Promise<void> {
  if (grants.length === 0) return;
  const question = [`${who} asks to`, ...grants.map((grant) => `- ${grant}`)].map(printable).join('\n');
  if (confirm && (await confirm(`${question}\nAllow it?`))) return;
  throw new SkepError('run/not-granted', {
    message: `${who} asks to ${grants.join(', ')}, which is not granted`,
    hint,
  });
}
