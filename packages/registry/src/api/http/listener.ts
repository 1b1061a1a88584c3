import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Log } from '@skep/core/log/log.ts';
import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { CorsSettings } from '../../config/cors.ts';
import type { ApiContext, Route } from '../route/route.ts';
import { accessLog, type RequestLog } from './access-log.ts';
import { AnswersInFlight } from './answers-in-flight.ts';
import { BodiesInFlight } from './bodies-in-flight.ts';
import { BrokenRequests } from './broken-request.ts';
import { variesBy } from './cors.ts';
import { EncodedAnswers } from './encodings.ts';
import type { HostRules } from './guard.ts';
import { observeRequests, type RequestObserver } from './observe-requests.ts';
import { limitRate, type RequestRate } from './rate-limit.ts';
import { readsPerTurn } from './reads-per-turn.ts';
import { RefusalLimit } from './refusal-limit.ts';
import { ApiRequest } from './request.ts';
import { answerSender } from './send.ts';
import { steps, stepRunner } from './steps.ts';
import type { Rate } from './token-buckets.ts';

export interface ListenerOptions {
  readonly routes: readonly Route[];
  readonly context: ApiContext;
  readonly log: Log;
  readonly requestLog: RequestLog;
  /** Who else is told of requests: the audit log, metrics, traces. */
  readonly observers?: readonly RequestObserver[];
  /** Makes what a request does part of its trace. */
  readonly tracing?: Tracing | undefined;
  readonly randomId: () => string;
  readonly clock: Clock;
  /** Answers go out encoded where a caller asks for it. */
  readonly compress?: boolean;
  /** Absent: browsers let no page of another origin call. */
  readonly cors?: CorsSettings;
  /** Milliseconds for a request to arrive, and for its handler; default 10 s. */
  readonly requestMs?: number;
  /** Absent or undefined: callers may ask as often as they like. */
  readonly requestRate?: () => RequestRate | undefined;
  /** Bytes of answers that callers have not read; tests set fewer. */
  readonly mostUnread?: number;
  /** Bytes of bodies that have not arrived whole; tests set fewer. */
  readonly mostUnfinished?: number;
  /** How often tokens of one address may be refused; absent: as often as they come. */
  readonly refusalRate?: () => Rate;
  /** What `Host` and `Origin` may be; undefined, or absent: anything. */
  readonly hosts?: () => HostRules | undefined;
}

const SECONDS = 1000;

/** An HTTP server for some routes of the table, not yet listening. */
export function createListener(options: ListenerOptions): Server {
  const { randomId, requestMs = DEFAULT_REQUEST_MS } = options;
  const broken = new BrokenRequests();
  const take = taker(options, requestMs);
  const handle = readsPerTurn(
    (raw, response) => {
      const request = new ApiRequest(raw, response, saneId(raw.headers['x-request-id']) ?? randomId());
      // A connection that a stopping server answers on is not used again.
      if (!server.listening) request.added.push('connection', 'close');
      take(request);
    },
    () => performance.now(),
  );
  const server = createServer(
    connectionLimits(requestMs),
    (raw: IncomingMessage, response: ServerResponse) => {
      broken.begin(raw, response);
      handle(raw, response);
    },
  );
  // Without any byte moving, which is how a client that does not read its answer looks; while a handler works none moves either.
  server.setTimeout(requestMs + 5 * SECONDS);
  return server.on('clientError', (error, socket) => broken.answer(error, socket));
}

/** Takes a request through everything that happens to it, as a part of its trace where there is one. */
function taker(options: ListenerOptions, requestMs: number): (request: ApiRequest) => void {
  const { routes, context, log, clock, tracing, cors, requestRate, refusalRate } = options;
  const sender = answerSender({
    vary: variesBy(cors),
    inFlight: new AnswersInFlight(options.mostUnread),
    encoded: options.compress === true ? new EncodedAnswers() : undefined,
  });
  const list = steps({
    routes,
    context,
    prepare: sender.prepare,
    identification: {
      signIn: context.signIn,
      refusals: refusalRate === undefined ? undefined : new RefusalLimit(refusalRate, clock),
    },
    bodies: new BodiesInFlight(options.mostUnfinished),
    time: { clock, requestMs },
    hosts: options.hosts ?? (() => undefined),
    cors,
    rate: requestRate === undefined ? undefined : limitRate(requestRate, clock),
  });
  const run = stepRunner(list, sender, log);
  const observe = observeRequests(observersOf(options));
  return (request) => {
    observe?.(request);
    if (tracing === undefined || request.span === undefined) run(request);
    else tracing.within(request.span, () => run(request));
  };
}

function observersOf({ log, requestLog, observers = [] }: ListenerOptions): readonly RequestObserver[] {
  return requestLog === 'none' ? observers : [accessLog(log, requestLog), ...observers];
}

/** For requests that may take so many milliseconds. A client that is slower holds a socket and nothing else. */
function connectionLimits(requestMs: number) {
  return {
    /** To receive a whole request. */
    requestTimeout: requestMs,
    headersTimeout: Math.min(requestMs, DEFAULT_REQUEST_MS),
    keepAliveTimeout: 60 * SECONDS,
    // Node looks for late requests this often; its default of 30 s would make the limits above meaningless.
    connectionsCheckingInterval: 1 * SECONDS,
    maxHeaderSize: 16 * 1024,
  };
}

/** A request id of the caller is used when it cannot break a log line or header. */
function saneId(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'string' && /^[\w.:-]{1,128}$/.test(header) ? header : undefined;
}

/** Milliseconds that a request may take to arrive, and its handler after that. */
const DEFAULT_REQUEST_MS = 10_000;
