/** Texts that callers choose (user agent, forwarded addresses, names) are cut here, so that a line stays a line. */
export const MAX_FIELD = 512;

/** The text, cut to so many UTF-16 units without splitting a character; lone surrogates become U+FFFD. */
export function limitedField(text: string, max = MAX_FIELD): string {
  const cut = text.length <= max ? text : text.slice(0, max);
  // Half of a pair at the end would become U+FFFD; dropping it loses nothing a reader could use.
  const whole = cut.length < text.length && /[\uD800-\uDBFF]$/u.test(cut) ? cut.slice(0, -1) : cut;
  return whole.toWellFormed();
}
