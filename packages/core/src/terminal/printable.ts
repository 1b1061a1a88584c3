/**
 * Control characters could move the cursor, rename the window or worse; format characters (bidirectional
 * overrides, invisible ones) make a text read as another.
 */
const UNSAFE = /[\p{Cc}\p{Cf}]/gu;
const REPLACEMENT = '\u{FFFD}';

/** One line: white space, line ends too, becomes one space; unsafe characters are shown as �. */
export function printable(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').replaceAll(UNSAFE, REPLACEMENT);
}

/** Several lines: line ends and tabs stay; unsafe characters are shown as �. */
export function printableLines(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll(UNSAFE, (found) => (/[\n\t]/.test(found) ? found : REPLACEMENT));
}

/** JSON text that means the same, with unsafe characters of its texts as `\u` escapes. */
export function printableJson(text: string): string {
  return text.replaceAll(UNSAFE, (found) => (/[\n\r\t]/.test(found) ? found : escaped(found)));
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => String.raw`\u${unit.toString(16).padStart(4, '0')}`).join('');
}
