import type { IncomingMessage, ServerResponse } from 'node:http';
import { localIdentity } from '@skep/auth/token/identity.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import { systemClock, type Clock } from '@skep/core/time/clock.ts';
import type { Backend, Front } from './backend/backend.ts';
import type { Call } from './call/call.ts';
import { chain, compose } from './call/chain.ts';
import { limitedLog } from './backend/limited-log.ts';
import { asides, isAside } from './endpoint/asides.ts';
import { refuse, recovery } from './call/refuse.ts';
import { Forward } from './backend/http/forward.ts';
import { ENDPOINT_PATH, StreamableHttp } from './endpoint/streamable-http.ts';
import { UnreadBudget } from './endpoint/unread-budget.ts';
import { drain } from '@skep/core/fetch/listen.ts';
import { httpServer, listenOn } from './listener.ts';
import { BodyBudget } from './steps/body-budget.ts';
import { bodyLimit } from './steps/body-limit.ts';
import { mcpParser } from './steps/mcp-parser.ts';
import { isLoopback } from './call/loopback.ts';
import { origin } from './steps/origin.ts';
import type { ProxyLimits } from './settings.ts';

export interface ProxyOptions extends ProxyLimits {
  /** Workload name, for health and logs. */
  readonly name: string;
  /** Address to listen on. */
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly backend: Backend;
  /** Origins of web pages that may call, beside the proxy's own; their hosts are names of the proxy as well. */
  readonly allowedOrigins?: readonly string[];
  readonly trustProxyHeaders: boolean;
  /** What a stdio server is told as its client's version. */
  readonly skepVersion: string;
  /** Who started the proxy, for the local identity; anonymous when unknown. */
  readonly osUser?: string;
  /** Shared with the other proxies of this process; of its own by default. */
  readonly budgets?: Budgets;
  /** Real time by default. */
  readonly clock?: Clock;
  readonly log: Log;
}

/** One listening MCP endpoint in front of one backend. */
export interface Proxy {
  /** What clients connect to, for example `http://127.0.0.1:4001/mcp`. */
  readonly url: string;
  readonly port: number;
  /**
   * Makes the handshake with a stdio server now, for all clients to come. Resolves with the `serverInfo` it told, or
   * undefined when it answered with an error; rejects with a code of the proxy when it cannot answer any more. Absent for
   * HTTP servers, with which every client shakes hands itself.
   */
  readonly greet?: () => Promise<unknown>;
  /** The backend's process has ended: clients are told to come back later, and nothing of it is kept. */
  backendEnded(): void;
  /** The backend was restarted: sessions and the cached handshake are void, and the proxy attaches to it again. */
  backendStarted(): void;
  /** Ends streams, waits for calls in flight (bounded), frees the port. Idempotent. */
  close(): Promise<void>;
}

/**
 * Listens and serves. Rejects with `proxy/port-busy` or `proxy/listen-failed` when the address cannot be had, with
 * `proxy/step-unbuildable` when a step cannot be built, and with the backend's own error when it cannot be attached.
 */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const clock = options.clock ?? systemClock;
  const budgets = options.budgets ?? newBudgets();
  const log = options.log.child({ workload: options.name });
  const { backend } = options;
  const common = { ...options, log, clock, unread: budgets.unread };
  const front: Front =
    backend.kind === 'stdio'
      ? new StreamableHttp({ ...common, backend })
      : new Forward({ ...common, backend });
  const server = httpServer();
  try {
    await front.attach?.();
    const port = await listenOn(server, options.host, options.port);
    let closed: Promise<void> | undefined;
    const isClosing = (): boolean => closed !== undefined;
    server.on('request', requestHandler({ ...options, budgets, clock, log, port }, front, isClosing));
    // Accepting may fail for want of descriptors; without a listener that would end the process.
    const limited = limitedLog(log, clock);
    server.on('error', (error) => limited.warn({ err: error }, 'a connection could not be accepted'));
    warnIfOpen(options, log);
    const close = async (): Promise<void> => {
      front.drain();
      await drain(server, { clock, graceMs: options.graceMs, beforeCut: () => front.close() });
      front.close();
    };
    return {
      url: `http://${inUrl(options.host)}:${port}${ENDPOINT_PATH}`,
      port,
      ...(front.greet === undefined ? {} : { greet: front.greet }),
      backendEnded: () => front.backendEnded?.(),
      backendStarted: () => front.backendStarted?.(),
      close: () => (closed ??= close()),
    };
  } catch (error) {
    front.close();
    server.close();
    throw error;
  }
}

/** Builds the chain; the only place where steps meet their settings. */
function requestHandler(
  options: ProxyOptions & { readonly budgets: Budgets; readonly clock: Clock },
  front: Front,
  isClosing: () => boolean,
): (req: IncomingMessage, res: ServerResponse) => void {
  const { log, clock, host: bindHost, port, allowedOrigins = [] } = options;
  const guard = { recovery: recovery(log), origin: origin({ bindHost, port, allowedOrigins }) };
  const throughChain = compose(
    chain({
      ...guard,
      'body-limit': bodyLimit(options.bodyLimitBytes, options.budgets.bodies),
      // Without an identity provider everybody is who started the proxy; an Authorization header says nothing.
      auth(call, next) {
        call.identity = localIdentity(options.osUser, clock.now());
        return next();
      },
      'mcp-parser': mcpParser(front.revisions),
      transport: front.step,
    }),
  );
  const besideChain = compose(
    [guard.recovery, guard.origin, asides(() => front.health(), clock)].map((run) => ({ run })),
  );
  return (req, res) => {
    if (isClosing()) {
      refuse(res, 'proxy/shutting-down', { headers: { Connection: 'close' } });
      return;
    }
    const call = callOf(req, res);
    const { path } = call;
    // Lives as long as the response, so it must not hold the call with its body.
    const failed = (error: unknown): void => {
      log.error({ err: error, path }, 'an answer could not be written');
      res.destroy();
    };
    res.on('error', failed);
    (isAside(call.path) ? besideChain(call) : throughChain(call)).catch(failed);
  };
}

function callOf(req: IncomingMessage, res: ServerResponse): Call {
  const { authority, target } = readTarget(req.url ?? '/');
  const query = target.indexOf('?');
  return {
    req,
    res,
    authority,
    target,
    path: query === -1 ? target : target.slice(0, query),
    readBody: () => Promise.reject(new SkepError('internal/bug', { message: 'no step bounds the body' })),
    identity: undefined,
    incoming: undefined,
    replyHooks: [],
  };
}

function warnIfOpen(options: ProxyOptions, log: Log): void {
  if (isLoopback(options.host)) return;
  log.warn(
    { host: options.host },
    'listening beyond this machine: whoever reaches the address can call the server',
  );
}

function inUrl(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

interface RequestTarget {
  /** Host and port, where the target is in absolute form. */
  readonly authority: string | undefined;
  /** Path and query; empty where the target is no path of ours, such as `*`. */
  readonly target: string;
}

const ABSOLUTE = /^http:\/\/([^/?#]*)(.*)$/iu;

/** Reads the origin form and the absolute form, which a server must accept as well (RFC 9112 §3.2). */
function readTarget(url: string): RequestTarget {
  if (url.startsWith('/')) return { authority: undefined, target: url };
  const [, authority, rest = ''] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return { authority: undefined, target: '' };
  return { authority, target: rest.startsWith('/') ? rest : `/${rest}` };
}

/** What all proxies of one process may hold together. */
export interface Budgets {
  readonly bodies: BodyBudget;
  readonly unread: UnreadBudget;
}

export function newBudgets(): Budgets {
  return { bodies: new BodyBudget(), unread: new UnreadBudget() };
}
