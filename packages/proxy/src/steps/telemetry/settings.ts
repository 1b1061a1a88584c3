/** What is measured of the calls of one proxy, and where that goes (docs/behaviour/proxy.md#telemetry). */
export interface ProxyTelemetry {
  readonly serviceName: string;
  readonly serviceVersion: string;
  /** Base URL of a collector, without a slash at its end; `none` leaves it to scrapers. */
  readonly endpoint: { readonly url: string } | 'none';
  /** Of requests to the collector. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM. */
  readonly ca?: string | undefined;
  /** Further attributes of the resource. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly tracing: 'off' | { readonly /** Share of new traces, from 0 to 1. */ sampling: number };
  readonly metrics: 'off' | 'on' | 'scraped';
  /** Serves `/metrics`. */
  readonly scrapes: boolean;
  /** Names of before the conventions were settled, beside those of today. */
  readonly legacyNames: boolean;
  /** Variables that spans show, by name. */
  readonly environment: Readonly<Record<string, string>>;
}
