/** What to measure and where to send it. */
export interface TelemetrySettings {
  readonly serviceName: string;
  readonly serviceVersion: string;
  /** Further attributes of the resource. */
  readonly attributes?: Readonly<Record<string, string>>;
  /** Base URL of an OTLP/HTTP collector without trailing slash; `none` keeps everything here, for a scraper to fetch. */
  readonly endpoint: { readonly url: string } | 'none';
  readonly headers?: Readonly<Record<string, string>>;
  readonly tracing: 'off' | { readonly /** Share of new traces, above 0 up to 1. */ sampling: number };
  readonly metrics: 'off' | 'on';
  /** Between two pushes of metrics; a minute when absent. */
  readonly pushEveryMs?: number;
}
