import type { Log } from '@skep/core/log/log.ts';
import type { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { RequestLog } from '../api/http/observe-requests.ts';
import type { BuildInfo } from '../config/build-info.ts';
import type { RegistryConfig } from '../config/load.ts';
import type { StorePlace } from '../store/open-store.ts';
import type { Ingest } from '../sync/ingest.ts';
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
