/** Labels that find what Skep made on an engine (docs/behaviour/run.md#labels). */
export const MANAGED_LABEL = 'skep.managed';
export const NAME_LABEL = 'skep.name';
/** Whose it is; see `ownerOf`. */
export const OWNER_LABEL = 'skep.state';
/** The engine's filter for what has the first. */
export const MANAGED = `${MANAGED_LABEL}=true`;
