import type { Entry } from '@skep/core/catalog/entry.ts';

/** How large what is stored of one version may be, in UTF-8 bytes. */
export interface DocumentLimits {
  readonly document: number;
  readonly description: number;
}

export const DEFAULT_DOCUMENTS: DocumentLimits = { document: 256 * 1024, description: 64 * 1024 };

/** Why a version is too large, or undefined. A source leaves it out, the publish doors refuse it. */
export function sizeFault({ json, document }: Entry, limits: DocumentLimits): string | undefined {
  const description = Buffer.byteLength(document.description);
  if (description > limits.description) return tooLarge('description', description, limits.description);
  const bytes = Buffer.byteLength(json);
  return bytes > limits.document ? tooLarge('document', bytes, limits.document) : undefined;
}

function tooLarge(what: string, bytes: number, most: number): string {
  return `the ${what} has ${String(bytes)} bytes, at most ${String(most)} are allowed`;
}
