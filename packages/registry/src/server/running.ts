import type { Log } from '@skep/core/log/log.ts';
import type { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { RequestLog } from '../api/http/observe-requests.ts';
import type { SignInSlot } from '../api/sign-in/sign-in.ts';
import type { BuildInfo } from '../config/build-info.ts';
import type { RegistryConfig } from '../config/load.ts';
import type { ReadEngine } from '../engine/read-engine.ts';
import type { Limits } from '../shape/limits.ts';
import type { OpenedStore, StorePlace } from '../store/open-store.ts';
import type { Ingest } from '../sync/ingest.ts';
import type { Catalogue } from './catalogue.ts';
import type { Operations } from './operations.ts';
import type { ServeAddresses } from './serve-addresses.ts';

/** What a registry is started with. */
export interface AppOptions {
  readonly config: RegistryConfig;
  readonly storePlace: StorePlace;
  readonly addresses: ServeAddresses;
  readonly build: BuildInfo;
  readonly log: Log;
  /** Lines for requests of the public listener. */
  readonly requestLog: RequestLog;
  /** Answers are encoded where a caller asks for it. */
  readonly compress: boolean;
  /** Which span code belongs to; the log reads it too. */
  readonly active: ActiveSpan;
  /** Where audit lines go that go to no file. */
  readonly stdout: { write(text: string): unknown };
  /** For the programs that sources use. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where temporary folders are made. */
  readonly tempDir: string;
  readonly ingest: Ingest;
  readonly clock: Clock;
  readonly random: () => number;
  readonly randomId: () => string;
  /** Called once everything is loaded and nothing is served yet. */
  readonly releaseMemory: () => void;
  /** Ends a start that still waits for sources; it then fails with the signal's reason. */
  readonly stop: AbortSignal;
}

/** A registry while it starts, runs and stops: what is not there yet is undefined. A reload replaces parts of it. */
export interface Running {
  /** The newest that was taken over. */
  config: RegistryConfig;
  /** Those of it, as far as they can be taken over. */
  limits: Limits;
  /** It serves, and was not asked to stop. */
  isReady: boolean;
  /** The reload that runs. */
  reloading?: Promise<unknown> | undefined;
  readonly engine: ReadEngine;
  readonly signIn: SignInSlot;
  store?: OpenedStore;
  operations?: Operations;
  catalogue?: Catalogue;
  /** Where it is reached, once it is. */
  urls?: { readonly public: string; readonly internal: string };
}
