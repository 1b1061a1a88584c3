import type { Entry } from '@skep/core/catalog/entry.ts';
import type { Limits } from '../shape/limits.ts';

/** Why a version is too large, or undefined. A source leaves it out, the publish doors refuse it. */
export function sizeFault(
  { json, document }: Entry,
  { maxDescriptionSize, maxDocumentSize }: Limits,
): string | undefined {
  const description = Buffer.byteLength(document.description);
  if (description > maxDescriptionSize) return tooLarge('description', description, maxDescriptionSize);
  const bytes = Buffer.byteLength(json);
  return bytes > maxDocumentSize ? tooLarge('document', bytes, maxDocumentSize) : undefined;
}

function tooLarge(what: string, bytes: number, most: number): string {
  return `the ${what} has ${bytes} bytes, at most ${most} are allowed`;
}
