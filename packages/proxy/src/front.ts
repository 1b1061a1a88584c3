import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Backend, Front, Health } from './backend/backend.ts';
import { Conversations } from './backend/http/conversations.ts';
import { Forward } from './backend/http/forward.ts';
import { Mux } from './backend/mux/mux.ts';
import type { BackendPort, PortState } from './backend/port.ts';
import { Pipe } from './backend/stdio/pipe.ts';
import type { Step } from './call/chain.ts';
import type { AddressSettings } from './call/public-address.ts';
import type { Face } from './endpoint/face.ts';
import { Sse } from './endpoint/sse.ts';
import { StreamableHttp } from './endpoint/streamable-http.ts';
import type { UnreadBudget } from './endpoint/unread-budget.ts';
import type { JsonObject } from './message/json-rpc.ts';

export interface FrontOptions extends AddressSettings {
  readonly backend: Backend;
  /** What clients of a stdio server speak; those of another speak what it does. */
  readonly mode: 'streamable-http' | 'sse';
  readonly signedIn: boolean;
  /** A step looks into messages, so bytes cannot be relayed as they are. */
  readonly looksInside: boolean;
  readonly requestTimeoutMs: number;
  readonly sessionTtlMs: number;
  readonly skepVersion: string;
  readonly unread: UnreadBudget;
  readonly clock: Clock;
  readonly log: Log;
}

/** What stands at the end of the chain. */
export function frontOf(options: FrontOptions): Front {
  const { backend, clock, looksInside } = options;
  if (backend.kind === 'stdio') {
    const mux = new Mux({ ...options, open: (events) => new Pipe({ backend, clock, ...events }) });
    return new MessageFront(mux, options.mode, options);
  }
  const { kind, target } = backend;
  const conversations = new Conversations({ ...options, kind, target });
  if (looksInside)
    return new MessageFront(conversations, kind === 'sse' ? 'sse' : 'streamable-http', options);
  // Whoever runs the proxy has no client for the older transport.
  const own = kind === 'sse' ? { greeter: conversations } : {};
  return new Forward({ ...options, backend, ...own });
}

const STATUS: Readonly<Record<PortState, Health['status']>> = {
  attached: 'healthy',
  attaching: 'degraded',
  lost: 'unhealthy',
};

/** A face in front of a port. */
class MessageFront implements Front {
  readonly revisions = 'known';
  readonly path: string;
  readonly step: Step;
  readonly answerer: Face;
  readonly #port: BackendPort;
  readonly #face: Face;

  constructor(port: BackendPort, mode: FrontOptions['mode'], options: FrontOptions) {
    const withPort = { ...options, backend: port };
    this.#port = port;
    this.#face = mode === 'sse' ? new Sse(withPort) : new StreamableHttp(withPort);
    this.answerer = this.#face;
    this.path = this.#face.path;
    this.step = this.#face.step;
  }

  readonly attach = (): Promise<void> => this.#port.attach();

  readonly greet = (): Promise<unknown> => this.#port.greet();

  readonly ask = (method: string, params: JsonObject): Promise<string> => this.#port.ask(method, params);

  health(): Health {
    const { state } = this.#port;
    return { status: STATUS[state], mcpAvailable: state === 'attached', transport: this.#face.transport };
  }

  /** Sessions stay until the server was started anew, so that clients hear why. */
  readonly backendEnded = (): void => this.#port.ended();

  readonly backendStarted = (): void => {
    this.#port.restarted();
    this.#face.endSessions();
  };

  drain(): void {
    this.#face.drain();
  }

  close(): void {
    this.#port.close();
    this.#face.close();
  }
}
