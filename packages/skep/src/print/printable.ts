/** Text from servers, catalogues and files for a terminal: control characters, which could move the cursor or worse, are shown as �. */
export function printable(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').replaceAll(/[\p{Cc}\p{Cf}]/gu, '\u{FFFD}');
}
