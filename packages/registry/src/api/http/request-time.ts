/** Milliseconds that a request may take to arrive, and its handler after that (specification §2.1, §2.9). */
export const DEFAULT_REQUEST_MS = 10_000;

const SECONDS = 1000;

/** Limits of a connection (specification §2.1). A client that is slower holds a socket and nothing else. */
export interface ConnectionLimits {
  /** To receive a whole request. */
  readonly requestTimeout: number;
  /** Without any byte moving, which is how a client that does not read its answer looks. */
  readonly connectionTimeout: number;
  readonly keepAliveTimeout: number;
  readonly http: {
    readonly headersTimeout: number;
    readonly connectionsCheckingInterval: number;
    readonly maxHeaderSize: number;
  };
}

/** For requests that may take so many milliseconds. */
export function connectionLimits(requestMs: number): ConnectionLimits {
  return {
    requestTimeout: requestMs,
    // While a handler works no byte moves either.
    connectionTimeout: requestMs + 5 * SECONDS,
    keepAliveTimeout: 60 * SECONDS,
    http: {
      headersTimeout: Math.min(requestMs, DEFAULT_REQUEST_MS),
      // Node looks for late requests this often; its default of 30 s would make the limits above meaningless.
      connectionsCheckingInterval: 1 * SECONDS,
      maxHeaderSize: 16 * 1024,
    },
  };
}
