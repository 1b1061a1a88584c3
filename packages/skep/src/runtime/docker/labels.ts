/** Labels that find what Skep made on an engine (docs/behaviour/run.md#labels). */
export const MANAGED_LABEL = 'skep.managed';
export const NAME_LABEL = 'skep.name';
/** Whose it is; see `ownerOf`. */
export const OWNER_LABEL = 'skep.state';
/** Of a volume that workloads share: its name. */
export const VOLUME_LABEL = 'skep.volume';
/** Of a network: `outward` or `internal`. Of a container: the name of the network that was made for it. */
export const NETWORK_LABEL = 'skep.network';
/** Of a network that was made ahead of a workload, and of its holder: the process that may hand it out; see `Spares`. */
export const MAKER_LABEL = 'skep.maker';
/** `true` for containers that are part of a workload and none themselves. */
export const AUXILIARY_LABEL = 'skep.auxiliary-workload';
/** `true` or `false`. */
export const ISOLATION_LABEL = 'skep.network-isolation';
/** The engine's filter for what has the first. */
export const MANAGED = `${MANAGED_LABEL}=true`;

/** True for what belongs to a workload and is none. */
export function isAuxiliary(labels: Readonly<Record<string, string>> | null | undefined): boolean {
  return labels?.[AUXILIARY_LABEL] === 'true';
}
