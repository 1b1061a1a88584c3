import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { OptionalSteps } from '../call/chain.ts';
import type { Call, Credentials } from '../call/call.ts';
import type { JsonObject } from '../message/json-rpc.ts';
import type { ToolCounts } from '../call/tool-counts.ts';

/** What a part of the chain that comes with settings adds to it. */
export interface Part {
  readonly steps: OptionalSteps;
  /** All metrics in the Prometheus text format, where `/metrics` serves them. */
  readonly scrape?: () => Promise<string>;
  /** What the server is shown for a call, as the row `outgoing-token` will; rejects with the code of what keeps it from being had. */
  readonly credentialsFor?: (call: Call) => Promise<Credentials | undefined>;
  /** The server was started anew, or says that its tools are others than before. */
  readonly toolsChanged?: () => void;
  /** The server was started anew, and may give its names to others; a single part is told `toolsChanged` then as well. */
  readonly serverStarted?: () => void;
  /** Called once, when no call can come any more; what it promises is waited for. */
  readonly close?: () => void | Promise<void>;
}

/** What parts are handed beside their settings. */
export interface PartServices {
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
  /** Of the workload. */
  readonly name: string;
  /** What the server behind speaks. */
  readonly transport: 'stdio' | 'streamable-http' | 'sse';
  /** Headers of a proxy in front say who is calling (`--trust-proxy-headers`). */
  readonly trustProxyHeaders: boolean;
  readonly skepVersion: string;
  /**
   * Asks the server on behalf of whoever makes that call, when calls come and not before. Resolves with the text of its answer,
   * an error too; rejects with the code of what kept it from answering.
   */
  readonly ask?: ((call: Call, method: string, params: JsonObject) => Promise<string>) | undefined;
  /** Of the tools of the server; somebody else counts. */
  readonly toolCounts: ToolCounts;
}
