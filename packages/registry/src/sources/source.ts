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

/**
 * A source that can tell cheaply, mostly with one request, that nothing changed. What it remembers for that (a commit, an
 * ETag) lives as long as the object and is a shortcut only: the caller says which content it holds, so a
 * synchronisation that failed after a fetch is not mistaken for a finished one.
 */
export interface ConditionalSource extends Source {
  /** As `fetch`, but undefined when the place still holds the content whose `hash` is `known`. */
  fetchIfChanged(known: string, signal: AbortSignal): Promise<SourceContent | undefined>;
}

/** As `fetchIfChanged`, from any source; without a `known` hash everything is fetched. */
export async function fetchUnlessKnown(
  source: Source | ConditionalSource,
  known: string | undefined,
  signal: AbortSignal,
): Promise<SourceContent | undefined> {
  if (known === undefined) return source.fetch(signal);
  if ('fetchIfChanged' in source) return source.fetchIfChanged(known, signal);
  const content = await source.fetch(signal);
  return content.hash === known ? undefined : content;
}
