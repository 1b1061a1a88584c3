import type { Meter } from '@opentelemetry/api';
import type { Tracing } from './tracing.ts';

/** Running telemetry. What is off is `undefined`: whoever measures asks once, when it is built. */
export interface Telemetry {
  readonly tracing: Tracing | undefined;
  readonly meter: Meter | undefined;
  /** All metrics in the Prometheus text format 0.0.4; absent with the meter. */
  readonly scrape: (() => Promise<string>) | undefined;
  /** Sends what was gathered, for up to 5 s, then lets go. Idempotent, never fails. */
  close(): Promise<void>;
}

export const NO_TELEMETRY: Telemetry = {
  tracing: undefined,
  meter: undefined,
  scrape: undefined,
  close: () => Promise.resolve(),
};
