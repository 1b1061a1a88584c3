// No field can contain it in JSON that a person wrote, so a match never spans two fields by accident.
const FIELD_END = '\u0000';

/** The lower-cased text that one version is searched in: name, title and description (specification §2.5.1). */
export function haystack(
  name: string,
  version: { readonly title: string | null; readonly description: string | null },
): string {
  return [name, version.title ?? '', version.description ?? ''].join(FIELD_END).toLowerCase();
}

/** A case-insensitive substring test; every character is literal, also `%`, `_` and `*`. */
export function searchTest(search: string): (haystack: string) => boolean {
  const needle = search.toLowerCase();
  if (needle.includes(FIELD_END)) return () => false;
  return (text) => text.includes(needle);
}
