/** Where in a document the servers are. */
export interface Spot {
  readonly key: string;
  readonly isList?: true;
}

export interface EntryText {
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A document as its format's library reads it. */
export interface Parsed {
  readonly root: Readonly<Record<string, unknown>>;
  /** What is under the key; undefined when nothing is. */
  readonly servers: unknown;
}

/** What was empty before the first entry, so that the last one leaves what was there. */
export interface Emptied {
  /** The text between the brackets of the servers; absent where there was no such place. */
  readonly place?: string;
  /** The same of the document. */
  readonly root?: string;
}

/**
 * Edits the text of one format. Texts come without byte order mark. All fail with any error where the text is not what
 * they can edit; whoever calls them compares before and after.
 */
export interface Editor {
  /** The document, or undefined for a text in which nothing is. */
  parse(text: string, spot: Spot): Parsed | undefined;
  /** The text with the entry, in place of one of that name. */
  set(text: string, spot: Spot, entry: EntryText): { readonly text: string; readonly emptied?: Emptied };
  /** The text without the entry; `emptied` is what `set` said of the first one. */
  remove(
    text: string,
    spot: Spot,
    entry: { readonly name: string; readonly emptied?: Emptied | undefined },
  ): string;
}

/** A text in double quotes, as JSON, YAML and TOML all read it. */
export function quote(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007F-\u009F\u2028\u2029\uFEFF]/g,
    (found) => String.raw`\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
