import type { Readable, Writable } from 'node:stream';
import type { Step } from '../call/chain.ts';
import type { JsonObject } from '../message/json-rpc.ts';

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

/** What `/health` tells. `mcpAvailable` only where the proxy can know it. */
export interface Health {
  readonly status: 'healthy' | 'degraded' | 'unhealthy';
  readonly mcpAvailable: boolean | undefined;
}

/** What one kind of backend puts at the end of the chain, and its life. */
export interface Front {
  /** The last row of the chain. */
  readonly step: Step;
  /** `known`: the proxy is the MCP server, so it knows all revisions there are. `any`: the server behind it decides. */
  readonly revisions: 'known' | 'any';
  readonly attach?: () => Promise<void>;
  health(): Health;
  /** See `Mux.greet`; absent where clients shake hands with the server themselves. */
  readonly greet?: () => Promise<unknown>;
  /** See `Mux.ask`; there where `greet` is. */
  readonly ask?: (method: string, params: JsonObject) => Promise<string>;
  /** The server's process has ended. */
  readonly backendEnded?: () => void;
  /** The server was started anew. */
  readonly backendStarted?: () => void;
  /** Ends what would otherwise stay open for ever; calls in flight go on. */
  drain(): void;
  /** Idempotent. */
  close(): void;
}
