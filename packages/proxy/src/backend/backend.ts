import type { Readable, Writable } from 'node:stream';
import type { ProvingTokenSource, SignInState } from '@skep/auth/sign-in/port.ts';
import type { Answerer, Call } from '../call/call.ts';
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

/**
 * A server that speaks HTTP itself: streamable HTTP (`http`), or the HTTP with SSE of MCP 2024-11-05 (`sse`). Where no step
 * looks into messages, requests are forwarded to `target` with their path and query.
 */
export interface HttpBackend {
  readonly kind: 'http' | 'sse';
  /** Scheme, host and port; of a server elsewhere its whole address. */
  readonly target: URL;
  /** Present for a server elsewhere. */
  readonly remote?: RemoteAccess | undefined;
}

/** How a server elsewhere is reached (docs/behaviour/proxy.md#remote-servers). */
export interface RemoteAccess {
  /** False refuses addresses that are not public, also behind host names. */
  readonly allowPrivate: boolean;
  /** Extra certificate authorities, PEM. */
  readonly ca?: readonly string[] | undefined;
  /** Stand for what clients send of these names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Its token is shown as `Authorization`, in the place of any other. */
  readonly token?: RemoteToken | undefined;
}

/** What a server elsewhere is shown of who asks (docs/behaviour/proxy.md#remote-sign-in); whoever closes the proxy closes it. */
export interface RemoteToken extends ProvingTokenSource {
  /** Has every change of its state told, from now on. */
  readonly follow: (tell: (state: SignInState) => void) => void;
  /**
   * The server answered 403; `challenge` is its `WWW-Authenticate`, which may say that it wants more than the token allows. The token
   * to try once more, where somebody has signed in for that meanwhile. Never fails.
   */
  readonly lacking: (token: string, challenge: string) => Promise<string | undefined>;
  /** What a person does where nobody is signed in, for those whose calls are refused. */
  readonly advice: string;
}

/** Where servers of either kind, and the proxy in front of them, have their endpoint. */
export const ENDPOINT_PATHS = { http: '/mcp', sse: '/sse' } as const;

/** Where the proxy of a server that speaks HTTP has its endpoint: there where a server elsewhere has its own. */
export function endpointPath({ kind, target, remote }: HttpBackend): string {
  if (remote === undefined) return ENDPOINT_PATHS[kind];
  if (target.pathname !== '/') return target.pathname;
  return kind === 'sse' ? ENDPOINT_PATHS.sse : '/';
}

export type Backend = StdioBackend | HttpBackend;

/**
 * How a server that speaks HTTP is. `unauthenticated`: one elsewhere wants to know who asks. `auth_retrying`: the token for one
 * elsewhere has ended, and cannot be refreshed for now.
 */
export type Condition = 'fine' | 'failing' | 'unauthenticated' | 'auth_retrying';

/** What `/health` tells. `mcpAvailable` only where the proxy can know it. */
export interface Health {
  /** The last look at the server, where it is looked at. */
  readonly seen?: { readonly at: number; readonly tookMs: number; readonly error?: string } | undefined;
  readonly transport: 'streamable-http' | 'sse';
  readonly status: 'healthy' | 'degraded' | 'unhealthy';
  readonly mcpAvailable: boolean | undefined;
}

/** The end of a chain, and its life: a face in front of a port (front.ts), or a relay of bytes (http/forward.ts). */
export interface Front {
  /** What clients connect to. */
  readonly path: string;
  /** The last row of the chain. */
  readonly step: Step;
  /** `known`: the proxy is the MCP server, so it knows all revisions there are. `any`: the server behind it decides. */
  readonly revisions: 'known' | 'any';
  /** What a request of a version that is not served hears: the modern one, or the legacy ones where that is not. */
  readonly serves: readonly string[];
  readonly attach?: () => Promise<void>;
  /** See `Call.answerer`. */
  readonly answerer?: Answerer;
  health(): Health;
  /** See `BackendPort.greet`; absent where clients shake hands with the server themselves. */
  readonly greet?: () => Promise<unknown>;
  /** See `BackendPort.ask`; there where `greet` is. */
  readonly ask?: (method: string, params: JsonObject) => Promise<string>;
  /** The same on behalf of whoever makes that call, whom the server need not have met; there where messages are read. */
  readonly askFor?: (call: Call, method: string, params: JsonObject) => Promise<string>;
  /** The server's process has ended. */
  readonly backendEnded?: () => void;
  /** The server was started anew. */
  readonly backendStarted?: () => void;
  /** Ends what would otherwise stay open for ever; calls in flight go on. */
  drain(): void;
  /** Idempotent. */
  close(): void;
}
