/** Drawn over two columns (UAX 11: wide and fullwidth), as terminals do. */
const WIDE =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303F\uFF01-\uFF60\uFFE0-\uFFE6]/u;
/** Drawn over the character before it. */
const COMBINING = /\p{Mn}|\p{Me}/u;
const PLAIN = /^[\x20-\x7E]*$/;

/** The columns that a text without control characters takes on a terminal. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) {
    if (COMBINING.test(character)) continue;
    width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}
