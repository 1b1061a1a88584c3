import { MAX_DEPTH, notJson, tooDeep } from './catalogue-text.ts';
import { cutLists, listElements, type Element } from './cut-lists.ts';

/** A catalogue read as far as its lists, which are long and are decoded one element at a time. */
export interface CatalogueDocument {
  /** The document decoded, with a placeholder for each of the outermost lists: an array that stands for its elements. */
  readonly frame: unknown;
  /** The elements of a placeholder; of anything else none. Throws `catalog/not-json`. */
  elements(placeholder: unknown): Generator<Element>;
  /** Reads the lists that are not among these, only to see that they are JSON. Throws `catalog/not-json`. */
  checkOthers(placeholders: readonly unknown[]): void;
  /** All of it at once, for documents without long lists. Throws `catalog/not-json`. */
  whole(): { readonly value: unknown; readonly json: string };
}

/**
 * Opens a catalogue of valid UTF-8; `label` names it in messages. Throws `catalog/not-json` (with line and column), and
 * `catalog/wrong-shape` for text that nests absurdly deep.
 */
export function openDocument(bytes: Buffer, label: string): CatalogueDocument {
  const text = (): string => bytes.toString('utf8');
  const explained = (cause: unknown): unknown =>
    cause instanceof SyntaxError ? notJson(text(), label, cause) : cause;
  const parsed = (json: string): unknown => {
    try {
      return JSON.parse(json);
    } catch (cause) {
      throw explained(cause);
    }
  };
  const { frame, lists, depth } = cutLists(bytes);
  if (depth > MAX_DEPTH) {
    parsed(text());
    throw tooDeep(label);
  }
  return {
    frame: parsed(frame),
    *elements(placeholder) {
      const list = lists[numberOf(placeholder)];
      if (list === undefined) return;
      try {
        yield* listElements(bytes, list);
      } catch (cause) {
        throw explained(cause);
      }
    },
    checkOthers(placeholders) {
      const known = new Set(placeholders.map(numberOf));
      for (const index of lists.keys()) {
        if (!known.has(index)) for (const element of this.elements([index])) void element;
      }
    },
    whole() {
      const json = text();
      return { value: parsed(json), json };
    },
  };
}

function numberOf(placeholder: unknown): number {
  const number: unknown = Array.isArray(placeholder) ? placeholder[0] : undefined;
  return typeof number === 'number' ? number : -1;
}
