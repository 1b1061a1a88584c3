import { printableLines } from '@skep/core/terminal/printable.ts';

const ESCAPE = String.fromCodePoint(0x1b);
/** SGR: colours and weights (ECMA-48 §8.3.117). Harmless, but their reset may never come. */
const STYLING = new RegExp(String.raw`${ESCAPE}\[[\d;:]*m`, 'gu');

/**
 * Lines of a server's log for a terminal: styling is left out, and any other control character, which could move the
 * cursor, rename the window or worse, is shown as �. Line ends and tabs stay.
 */
export function printableLog(text: string): string {
  return printableLines(text.replaceAll(STYLING, ''));
}
