// No field can contain it in JSON that a person wrote, so a match never spans two fields by accident.
const FIELD_END = '\u0000';

/** Characters that a search may have: comparing costs, in the worst case, their number times that of the text. */
export const MAX_SEARCH_CHARACTERS = 200;
/** Characters of a title and of a description that are searched. */
export const SEARCHED_CHARACTERS = 4096;

/** The lower-cased text that one version is searched in: name, title and description. */
export function haystack(
  name: string,
  version: { readonly title: string | null; readonly description: string | null },
): string {
  return [name, searched(version.title), searched(version.description)].join(FIELD_END).toLowerCase();
}

function searched(text: string | null): string {
  return text === null ? '' : text.slice(0, SEARCHED_CHARACTERS);
}

/** A case-insensitive substring test; every character is literal, also `%`, `_` and `*`. */
export function searchTest(search: string): (haystack: string) => boolean {
  const needle = search.toLowerCase();
  if (needle.includes(FIELD_END)) return () => false;
  return (text) => text.includes(needle);
}
