import type { RuntimeEnvironment } from '../environment.ts';
import type { PrepareRequest, Report } from '../runtime.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { Bubblewrap } from './confine.ts';

/** What a lookup is given. */
export interface Lookup {
  readonly environment: RuntimeEnvironment;
  readonly source: PackageSource;
  readonly request: Pick<PrepareRequest, 'report' | 'signal' | 'caCert'>;
}

/** Where and with what a package is fetched. */
export interface Fetch {
  readonly bubblewrap: Bubblewrap;
  /** A directory of this fetch alone; `tree` in it, which is empty, becomes the package. */
  readonly stage: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** A package of which is known what it means today. */
export interface FoundPackage extends Disposable {
  /** Id of its tree. */
  readonly reference: string;
  /** `name@version`. */
  readonly specifier: string;
  /** Fills the tree, confined, with everything that its server needs. */
  readonly fetch: (fetch: Fetch) => Promise<void>;
}

export type FindPackage = (lookup: Lookup) => Promise<FoundPackage>;
