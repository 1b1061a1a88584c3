import type { Log } from '@skep/core/log/log.ts';
import type { Backend, HttpBackend, StdioBackend } from './backend/backend.ts';
import { Forward } from './backend/http/forward.ts';
import { LimitedLog } from './backend/limited-log.ts';
import { Mux } from './backend/stdio/mux.ts';
import type { PipeState } from './backend/stdio/pipe.ts';
import type { Step } from './call/chain.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Health } from './endpoint/asides.ts';
import type { UnreadBudget } from './endpoint/unread-budget.ts';
import { StreamableHttp } from './endpoint/streamable-http.ts';
import type { ParserSettings } from './steps/mcp-parser.ts';

/** What one kind of backend puts at the end of the chain, and its life. */
export interface Front {
  readonly step: Step;
  readonly revisions: ParserSettings['revisions'];
  attach(): Promise<void>;
  health(): Health;
  /** See `Mux.greet`; absent where clients shake hands with the server themselves. */
  readonly greet?: () => Promise<unknown>;
  backendEnded(): void;
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
  readonly unread: UnreadBudget;
  readonly skepVersion: string;
  readonly log: Log;
}

/** The end of the chain for `options.backend`. */
export function frontOf(options: FrontOptions, clock: Clock): Front {
  const { backend } = options;
  return backend.kind === 'stdio' ? stdioFront(backend, options, clock) : httpFront(backend, options, clock);
}

const STATUS: Readonly<Record<PipeState, Health['status']>> = {
  attached: 'healthy',
  attaching: 'degraded',
  lost: 'unhealthy',
};

function stdioFront(backend: StdioBackend, options: FrontOptions, clock: Clock): Front {
  const { log, requestTimeoutMs, sessionTtlMs, skepVersion } = options;
  const mux = new Mux({ backend, clock, log, requestTimeoutMs, skepVersion });
  const endpoint = new StreamableHttp({ mux, clock, sessionTtlMs, budget: options.unread });
  return {
    step: endpoint.step,
    revisions: 'known',
    attach: () => mux.attach(),
    health: () => ({
      status: STATUS[mux.pipeState],
      transport: 'streamable-http',
      mcpAvailable: mux.pipeState === 'attached',
    }),
    greet: () => mux.greet(),
    backendEnded: () => endpoint.backendEnded(),
    backendStarted: () => endpoint.backendStarted(),
    drain: () => endpoint.endStandaloneStreams(),
    close: () => endpoint.close(),
  };
}

function httpFront(backend: HttpBackend, options: FrontOptions, clock: Clock): Front {
  const { trustProxyHeaders } = options;
  const log = new LimitedLog(options.log, clock);
  const forward = new Forward({ target: backend.target, trustProxyHeaders, log });
  return {
    step: forward.step,
    revisions: 'any',
    attach: () => Promise.resolve(),
    health: () => ({
      status: forward.reachable === false ? 'degraded' : 'healthy',
      transport: 'streamable-http',
      mcpAvailable: forward.reachable,
    }),
    backendEnded() {},
    backendStarted() {},
    drain: () => forward.endStreams(),
    close() {
      forward.close();
      log.close();
    },
  };
}
