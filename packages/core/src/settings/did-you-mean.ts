/** The closest candidate, of whose letters at most a third may differ; undefined when none is close. */
export function didYouMean(given: string, candidates: Iterable<string>): string | undefined {
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    const limit = Math.max(1, Math.floor(Math.max(given.length, candidate.length) / 3));
    // Length rules most candidates out, so that hostile input cannot make this slow.
    if (Math.abs(given.length - candidate.length) > limit) continue;
    const distance = editDistance(given.toLowerCase(), candidate.toLowerCase());
    if (distance <= limit && (best === undefined || distance < best.distance)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Ready-made hint: `did you mean "x"?`, or the fallback. */
export function suggestion(given: string, candidates: Iterable<string>, otherwise: string): string {
  const best = didYouMean(given, candidates);
  return best === undefined ? otherwise : `did you mean "${best}"?`;
}

/** Optimal string alignment: insertions, deletions, replacements and swaps of neighbours count one each. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let value = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        value = Math.min(value, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(value);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
