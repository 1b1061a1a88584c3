/** The value of a JSON text; undefined, which is no JSON value, for a text that is none. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
