import type { Log } from '@skep/core/log/log.ts';
import type { Backend, HttpBackend, StdioBackend } from './backend/backend.ts';
import { Forward } from './backend/http/forward.ts';
import { Mux } from './backend/stdio/mux.ts';
import type { PipeState } from './backend/stdio/pipe.ts';
import type { Step } from './chain.ts';
import type { Clock } from './clock.ts';
import type { Health } from './endpoint/asides.ts';
import { StreamableHttp } from './endpoint/streamable-http.ts';
import type { ParserSettings } from './steps/mcp-parser.ts';

/** What one kind of backend puts at the end of the chain, and its life. */
export interface Front {
  readonly step: Step;
  readonly demands: ParserSettings['demands'];
  attach(): Promise<void>;
  health(): Health;
  backendStarted(): void;
  /** Ends what would otherwise stay open for ever; calls in flight go on. */
  drain(): void;
  /** Idempotent. */
  close(): void;
}

export interface FrontOptions {
  readonly backend: Backend;
  readonly trustProxyHeaders: boolean;
  readonly requestTimeoutMs: number;
  readonly sessionTtlMs: number;
  readonly log: Log;
}

/** The end of the chain for `options.backend`. */
export function frontOf(options: FrontOptions, clock: Clock): Front {
  const { backend } = options;
  return backend.kind === 'stdio' ? stdioFront(backend, options, clock) : httpFront(backend, options);
}

const STATUS: Readonly<Record<PipeState, Health['status']>> = {
  attached: 'healthy',
  attaching: 'degraded',
  lost: 'unhealthy',
};

const stdioFront = (backend: StdioBackend, options: FrontOptions, clock: Clock): Front => {
  const { log, requestTimeoutMs, sessionTtlMs } = options;
  const mux = new Mux({ backend, clock, log, requestTimeoutMs });
  const endpoint = new StreamableHttp({ mux, clock, sessionTtlMs });
  return {
    step: endpoint.step,
    demands: 'every-body',
    attach: () => mux.attach(),
    health: () => ({
      status: STATUS[mux.pipeState],
      transport: 'streamable-http',
      mcpAvailable: mux.pipeState === 'attached',
    }),
    backendStarted: () => endpoint.backendStarted(),
    drain: () => endpoint.endStandaloneStreams(),
    close: () => endpoint.close(),
  };
};

const httpFront = (backend: HttpBackend, { trustProxyHeaders, log }: FrontOptions): Front => {
  const forward = new Forward({ target: backend.target, trustProxyHeaders, log });
  return {
    step: forward.step,
    demands: 'json-bodies',
    attach: () => Promise.resolve(),
    health: () => ({
      status: forward.reachable === false ? 'degraded' : 'healthy',
      transport: 'streamable-http',
      mcpAvailable: forward.reachable,
    }),
    backendStarted() {},
    drain: () => forward.endStreams(),
    close: () => forward.close(),
  };
};
