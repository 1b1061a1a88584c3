/** What a source holds at one moment, not yet read. */
export interface SourceContent {
  readonly bytes: Uint8Array;
  /** Hash of the bytes; equal hashes mean nothing changed. */
  readonly hash: string;
}

/** A place that entries come from. Owned by the synchronisation; one adapter per kind. */
export interface Source {
  readonly name: string;
  /** What to call the content in messages: a path or URL. */
  readonly label: string;
  /** Fetches everything. Fails with a SkepError that names the place. */
  fetch(signal: AbortSignal): Promise<SourceContent>;
}
