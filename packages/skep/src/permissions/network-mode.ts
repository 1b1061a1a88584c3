import type { PermissionProfile } from './profile.ts';

/**
 * The profile with the network mode it means: `--network`, else its own, else none at all where it allows no connection.
 * A profile that allows nothing and is not enforced would be a promise nobody keeps: the switch itself, not a filter,
 * keeps it so (decision 0142). Lists of allowed hosts are kept for the isolation of a later release.
 */
export function withNetworkMode(profile: PermissionProfile, network?: string): PermissionProfile {
  // Other tools write an empty text for "not given".
  const mode = network ?? (profile.network?.mode || impliedMode(profile));
  return mode === undefined ? profile : { ...profile, network: { ...profile.network, mode } };
}

function impliedMode(profile: PermissionProfile): string | undefined {
  const outbound = profile.network?.outbound;
  if (outbound === undefined || outbound.insecure_allow_all === true) return undefined;
  const listed = (outbound.allow_host?.length ?? 0) + (outbound.allow_port?.length ?? 0);
  return listed === 0 ? 'none' : undefined;
}
