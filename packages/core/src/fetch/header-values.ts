/**
 * Every value as received, by the lower-case name: Node keeps only the first of repeated ones in `headers`,
 * and whatever stands before us may have looked at another. No closure: every request comes through here.
 */
export function headerValues(rawHeaders: readonly string[], header: 'host' | 'authorization'): string[] {
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const isIt = name.length === header.length && name.toLowerCase() === header;
    if (isIt) values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}
