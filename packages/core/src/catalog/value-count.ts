const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/**
 * Whether JSON may hold more values than that: short values take forty times their bytes once they are parsed, so bytes
 * alone bound no memory. Looks at every byte once, before anything is made of them; commas in texts count as well, as it
 * is the order of magnitude that matters. Real catalogues have some thirty bytes to a value.
 */
export function mayHoldMoreValuesThan(limit: number, json: Uint8Array): boolean {
  let values = 0;
  for (let at = 0; at < json.length && values <= limit; at += 1) {
    const byte = json[at];
    if (byte === COMMA || byte === BRACE || byte === BRACKET) values += 1;
  }
  return values > limit;
}
