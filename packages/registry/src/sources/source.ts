import { hash } from 'node:crypto';

/** What a source holds at one moment, not yet read. */
export interface SourceContent {
  readonly bytes: Uint8Array;
  /** Hash of the bytes; equal hashes mean nothing changed. */
  readonly hash: string;
}

export function sourceContent(bytes: Uint8Array): SourceContent {
  return { bytes, hash: hash('sha256', bytes) };
}

/** A place that entries come from. Owned by the synchronisation; one adapter per kind. */
export interface Source {
  /** What to call the content in messages: a path or URL. */
  readonly label: string;
  /**
   * Fetches everything, or answers undefined where the place can tell cheaply, mostly with one request, that it still holds
   * the content whose hash is `known`. What it remembers for that (a commit, an ETag) lives as long as the object and is a
   * shortcut only: the caller says which content it holds, so a synchronisation that failed after a fetch is not mistaken
   * for a finished one. Fails with a SkepError that names the place.
   */
  fetch(signal: AbortSignal, known?: string): Promise<SourceContent | undefined>;
}
