import { withPlainNames } from './scan.ts';

/**
 * The value of a JSON text, for texts of others: whoever acts on it must see the members that everybody else sees. V8 takes a
 * name with escapes for another one that stood in the same place of an earlier object, where that equals the beginning
 * of its spelling: after `{"a":[],"\\u00":0}` it reads `{"a":1,"\u006eame":2}` without a `name`. Fails as `JSON.parse`.
 */
export function parseJson(text: string): unknown {
  return JSON.parse(withPlainNames(text)) as unknown;
}

/** The value of a JSON text; undefined, which is no JSON value, for a text that is none. */
export function parsedJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
