import type { Meter } from '@opentelemetry/api';
import type { Tracing } from './tracing.ts';

/** What is off is `undefined`: whoever measures asks once, when it is built. */
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

/** What to measure and where to send it. */
export interface TelemetrySettings {
  readonly serviceName: string;
  readonly serviceVersion: string;
  /** Further attributes of the resource. */
  readonly attributes?: Readonly<Record<string, string>>;
  /** Base URL of an OTLP/HTTP collector without trailing slash; `none` leaves it to scrapers. */
  readonly endpoint: { readonly url: string } | 'none';
  readonly headers?: Readonly<Record<string, string>>;
  /** Certificates (PEM) of the authorities that a collector over https may have its own from; the usual ones when absent. */
  readonly ca?: string;
  readonly tracing: 'off' | { readonly /** Share of new traces, from 0 to 1. */ sampling: number };
  /** `scraped`: only whoever asks for them gets them. */
  readonly metrics: 'off' | 'on' | 'scraped';
  /** Between two pushes of metrics; a minute when absent. */
  readonly pushEveryMs?: number;
}
