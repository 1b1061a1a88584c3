import type { SkepError } from '@skep/core/errors/skep-error.ts';
import type { BuildSecrets } from './build-secrets.ts';
import type { PrepareRequest, Runtime } from './runtime.ts';
import type { Spares, SparesOf } from './spares.ts';

/** What a runtime may know about the machine and the user; built once in main.ts. */
export interface RuntimeEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Home directory. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Absolute path of the running Node binary. */
  readonly execPath: string;
  /** Content of login files that count beside the person's own; see `BuildSecrets`. */
  readonly loginFiles?: BuildSecrets['files'];
  /** Directory for the sandbox's workloads; made when needed. */
  readonly dataDir: string;
  /** Directory of the locks that exclude other processes of the user; absent where none uses `dataDir`. */
  readonly locksDir?: string | undefined;
  /** Directory for fetched package trees; made when needed. */
  readonly cacheDir: string;
  /** Whose builds these are on an engine that several share; see `ownerOf`. */
  readonly owner: string;
  /** A fresh token of at least 64 random bits in lower-case hex. */
  readonly randomId: () => string;
  /** What this process has made ahead for workloads to come; absent in all but the supervisor and a run that starts it. */
  readonly spares?: Spares | undefined;
  /** Tells what a process that runs has made ahead from what is left; absent where all of that is. */
  readonly isAlive?: SparesOf['isAlive'];
}

/** The machine as the person who asked for a preparation has it; see `PrepareRequest.env`. */
export function forRequest(
  environment: RuntimeEnvironment,
  { env }: Pick<PrepareRequest, 'env'>,
): RuntimeEnvironment {
  return env === undefined ? environment : { ...environment, env };
}

/** One thing that was tried and why it did not do. */
export interface Refusal {
  readonly strategy: string;
  readonly why: string;
  /** What would help. */
  readonly hint?: string;
}

export type Finding<Found> =
  | { readonly found: Found }
  | {
      readonly refusals: readonly Refusal[];
      /** The person named what was tried, so nothing else may be used in its place: how to go on. */
      readonly exclusive?: string;
      /** Says more than a list of one, where the kind was asked for by name. */
      readonly error?: SkepError;
    };

/**
 * Looks for one kind of runtime on this machine; at `endpoint`, where a saved workload names the one it belongs to. `named`: a
 * person asked for this kind.
 */
export type FindRuntime = (
  environment: RuntimeEnvironment,
  endpoint: string | undefined,
  named?: boolean,
) => Promise<Finding<Runtime>>;

/** `unknown`: only starting something, or asking another machine, would tell. */
export type Answer = 'yes' | 'no' | 'unknown';

export type Surroundings = Pick<RuntimeEnvironment, 'env' | 'home' | 'platform' | 'cacheDir'>;

/** Whether a kind of runtime is there: told in milliseconds, but for the first look; no engine is asked anything. */
export type Glance = (surroundings: Surroundings) => Promise<Answer>;
