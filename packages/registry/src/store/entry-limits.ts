/** How much one entry of the managed source may hold: each write about it reads all of it while others wait. */
export interface EntryLimits {
  readonly versions: number;
  /** Of all its documents, as UTF-8. */
  readonly bytes: number;
}

export const DEFAULT_ENTRY: EntryLimits = { versions: 1_000, bytes: 16 * 1024 * 1024 };
