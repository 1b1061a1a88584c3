/** A name of a Python distribution as indexes compare it (PEP 503). */
export function normalName(name: string): string {
  return name.replaceAll(/[-_.]+/g, '-').toLowerCase();
}
