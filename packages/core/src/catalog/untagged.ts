/** An image reference without its tag and digest; a colon before the last slash is that of a port. */
export function untagged(reference: string): string {
  const [named = ''] = reference.split('@', 1);
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1);
  return colon === -1 ? named : named.slice(0, colon);
}
