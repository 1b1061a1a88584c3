import type { Readable, Writable } from 'node:stream';

/** The pipe to a stdio MCP server, one JSON-RPC message per line. `close` detaches, it does not stop the server. */
export interface StdioStreams {
  readonly stdin: Writable;
  readonly stdout: Readable;
  close(): void;
}

/**
 * What stands behind one proxy. `attach` is called again after the pipe broke; it fails when the server is gone
 * for good, and then the proxy reports itself unhealthy until `Proxy.backendStarted()` is called.
 */
export interface StdioBackend {
  readonly kind: 'stdio';
  attach(): Promise<StdioStreams>;
}

/** A server that speaks streamable HTTP itself; requests are forwarded to `target` with their path and query. */
export interface HttpBackend {
  readonly kind: 'http';
  /** Scheme, host and port only. */
  readonly target: URL;
}

export type Backend = StdioBackend | HttpBackend;
