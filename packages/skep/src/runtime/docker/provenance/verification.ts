import type { ExtensionProvenance } from '@skep/core/catalog/publisher-extension.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Connections } from '@skep/core/fetch/requester.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Report } from '../../runtime.ts';
import type { CredentialSources } from '../credentials.ts';

/** One image that is to be verified, and what that is done with. */
export interface Verification {
  /** As the person or the catalogue wrote it. */
  readonly reference: string;
  readonly expected: ExtensionProvenance;
  /** Digest that the engine's own copy has, where that would be run. */
  readonly localDigest?: string | undefined;
  readonly credentials: CredentialSources;
  readonly connections: Connections;
  /** A `trusted_root.json` instead of the one that came with this release. */
  readonly trustedRoot?: string | undefined;
  readonly cacheDir: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Told what is run if nothing is wrong, as soon as its digest is known. */
  readonly resolved?: (reference: string) => void;
  /** Milliseconds for all of it; a minute where nothing is said. */
  readonly withinMs?: number;
  readonly report: Report;
  readonly signal: AbortSignal;
}

export function unverified(reference: string, why: string): SkepError {
  return new SkepError('runtime/unverified', {
    message: `image verification failed: "${printable(reference)}": ${why}`,
  });
}
