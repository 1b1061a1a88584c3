import { SkepError } from '@skep/core/errors/skep-error.ts';
import { tellsAll, toHttp } from '@skep/core/errors/to-http.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import { createServer, type IncomingMessage } from 'node:http';
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactory,
} from 'fastify';
import { AnswersInFlight } from './answers-in-flight.ts';
import { accessLog, type RequestLog } from './access-log.ts';
import { BodiesInFlight } from './bodies-in-flight.ts';
import { BrokenRequests } from './broken-request.ts';
import { allowOrigins, variesBy } from './cors.ts';
import type { CorsSettings } from '../../config/cors.ts';
import { EncodedAnswers } from './encodings.ts';
import { hostFault, type HostRules } from './host-guard.ts';
import { type Identification, identify } from './identify.ts';
import {
  enterSpans,
  observeRequests,
  type RequestFailure,
  type RequestObserver,
  watchAnswers,
} from './observe-requests.ts';
import { type ReadLane, readLane } from './read-lane.ts';
import { readsPerTurn } from './reads-per-turn.ts';
import { limitRate, type RequestRate } from './rate-limit.ts';
import { RefusalLimit } from './refusal-limit.ts';
import type { Rate } from './token-buckets.ts';
import { bodyFault, keepBodiesAsBytes } from './read-body.ts';
import { hasDotSegment, unreadablePath } from './request-path.ts';
import { type ConnectionLimits, connectionLimits, DEFAULT_REQUEST_MS } from './request-time.ts';
import { addRoutes } from './router.ts';
import { badRequest } from '../route/parameter.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { ApiContext, Route } from '../route/route.ts';
import { answerSender, type SendAnswer } from './send-answer.ts';

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

const LONGEST_SEGMENT = 2048;

/** An HTTP server for some routes of the table, not yet listening. */
export function createListener(options: ListenerOptions): FastifyInstance {
  const { routes, context, log, randomId, clock, tracing, requestMs = DEFAULT_REQUEST_MS } = options;
  const limits = connectionLimits(requestMs);
  const observers = observersOf(options);
  const broken = new BrokenRequests();
  const inFlight = new AnswersInFlight(options.mostUnread);
  const idOf = (request: IncomingMessage): string => saneId(request.headers['x-request-id']) ?? randomId();
  const server = fastify({
    ...limits,
    serverFactory: ownServer(laneOf(routes, options, { idOf, observers, inFlight }), broken, limits),
    logger: false,
    // Whoever is behind a proxy says so in a setting of a later release; until then forwarded headers are not believed.
    trustProxy: false,
    routerOptions: { maxParamLength: LONGEST_SEGMENT },
    genReqId: idOf,
    requestIdHeader: false,
    // All idle connections end with the server, so that closing waits only for requests that run.
    forceCloseConnections: 'idle',
    // These requests meet no hook.
    frameworkErrors: (error, request, reply) => {
      observe(request, reply);
      setCommonHeaders(request, reply);
      sendError(reply, unreadablePath(request.raw.url ?? '', error));
    },
    clientErrorHandler: (error, socket) => broken.answer(error, socket),
  });
  for (const member of ['authority', 'door', 'failure', 'facts', 'span'])
    server.decorateRequest(member, undefined);
  keepBodiesAsBytes(server, new BodiesInFlight(options.mostUnfinished));
  const observe = observeRequests(server, routes, observers);
  if (tracing !== undefined) enterSpans(server, tracing);
  server.addHook('onRequest', (request, reply, done) => {
    setCommonHeaders(request, reply);
    const fault = targetFault(request.raw, options);
    // Where a body ends that nobody could read is not known.
    if (fault !== undefined && request.headers['transfer-encoding'] !== undefined)
      reply.header('connection', 'close');
    done(fault);
  });
  if (options.cors !== undefined) server.addHook('onRequest', allowOrigins(options.cors));
  server.setErrorHandler((thrown, request, reply) => {
    const error = bodyFault(thrown);
    request.failure = failureOf(error);
    readToItsEnd(request, reply);
    if (!tellsAll(error)) log.error({ err: error, request_id: reply.request.id }, 'request failed');
    sendError(reply, error);
  });
  const identification: Identification = {
    signIn: context.signIn,
    ...(options.refusalRate === undefined ? {} : { refusals: new RefusalLimit(options.refusalRate, clock) }),
  };
  const identifyStranger = identify(identification, 'nothing');
  // Before the body, of which a caller without a token may send nothing.
  server.addHook('onRequest', (request, reply, done) => {
    if (request.is404) identifyStranger.call(server, request, reply, done);
    else done();
  });
  server.setNotFoundHandler((_request, reply) => sendError(reply, new SkepError('registry/no-such-route')));
  const encoded = options.compress === true ? new EncodedAnswers() : undefined;
  const admit = options.requestRate === undefined ? undefined : limitRate(options.requestRate, clock);
  const send = noting(answerSender(encoded, inFlight));
  addRoutes(server, routes, { context, identification, clock, requestMs, send, admit });
  return server;
}

interface LaneParts {
  readonly idOf: (request: IncomingMessage) => string;
  readonly observers: readonly RequestObserver[];
  readonly inFlight: AnswersInFlight;
}

/** Traces have their place in the router; a server that has them sends everything there. */
function laneOf(
  routes: readonly Route[],
  options: ListenerOptions,
  { idOf, observers, inFlight }: LaneParts,
): ReadLane | undefined {
  if (options.tracing !== undefined) return undefined;
  const lane = readLane(routes, {
    context: options.context,
    encodes: options.compress === true,
    vary: variesBy(options.cors),
    idOf,
    inFlight,
    watch: watchAnswers(observers),
  });
  return unlessGuarded(lane, options);
}

/** The server that the framework would make, with the lane before its router. */
function ownServer(
  lane: ReadLane | undefined,
  broken: BrokenRequests,
  { requestTimeout, keepAliveTimeout, connectionTimeout, http }: ConnectionLimits,
): FastifyServerFactory {
  return (router) => {
    const handle = readsPerTurn(
      (request, response) => {
        if (lane?.(request, response) !== true) router(request, response);
      },
      () => performance.now(),
    );
    const server = createServer({ ...http, requestTimeout, keepAliveTimeout }, (request, response) => {
      broken.begin(request, response);
      handle(request, response);
    });
    server.setTimeout(connectionTimeout);
    return server;
  };
}

/** The lane, which leaves pages of other origins, and everything while a rate is set, to the router: it tells callers apart. */
function unlessGuarded(lane: ReadLane, { cors, requestRate, hosts }: ListenerOptions): ReadLane {
  if (cors === undefined && requestRate === undefined && hosts === undefined) return lane;
  return (request, response) => {
    const rules = hosts?.();
    return (
      requestRate?.() === undefined &&
      (cors === undefined || request.headers.origin === undefined) &&
      (rules === undefined || hostFault(request, rules) === undefined) &&
      lane(request, response)
    );
  };
}

function observersOf({ log, requestLog, observers = [] }: ListenerOptions): readonly RequestObserver[] {
  return requestLog === 'none' ? observers : [accessLog(log, requestLog), ...observers];
}

/** What an answer tells the audit log stays with its request until the end. */
function noting(send: SendAnswer): SendAnswer {
  return (request, reply, answer) => {
    request.facts = answer.facts;
    send(request, reply, answer);
  };
}

function failureOf(error: unknown): RequestFailure {
  return error instanceof SkepError
    ? { code: error.code, detail: error.detail }
    : { code: 'internal/bug', detail: {} };
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({
    'x-request-id': request.id,
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'same-origin',
    vary: variesBy(undefined),
  });
}

/** Bytes that are read for nobody, so that their sender hears why. */
const MOST_UNREAD = 64 * 1024 * 1024;

/**
 * The framework closes a connection whose body it does not take, and a client that is still sending then meets a reset in
 * place of the answer. A body of bounded length is read and thrown away instead, for no longer than any request may take.
 */
function readToItsEnd({ raw }: FastifyRequest, reply: FastifyReply): void {
  const length = Number(raw.headers['content-length']);
  if (!(length <= MOST_UNREAD) || raw.complete) return;
  reply.removeHeader('connection');
  raw.resume();
}

/** Seconds, where nobody knows better when what is away comes back. */
const RETRY_AFTER = '2';

function retryAfter(error: unknown, status: number): string | undefined {
  const known = error instanceof SkepError ? error.detail['retryAfterSeconds'] : undefined;
  if (typeof known === 'number') return String(known);
  return status === 503 ? RETRY_AFTER : undefined;
}

/** Errors with a client's status keep it; everything else is 500 without its text. */
function sendError(reply: FastifyReply, error: unknown): void {
  const { status, body } = toHttp(error);
  const after = retryAfter(error, status);
  if (after !== undefined) reply.header('retry-after', after);
  reply.code(status).header('cache-control', 'no-store').type('application/json; charset=utf-8').send(body);
}

/** What is answered before anything else is looked at. */
function targetFault(request: IncomingMessage, { hosts }: ListenerOptions): SkepError | undefined {
  const rules = hosts?.();
  const foreign = rules === undefined ? undefined : hostFault(request, rules);
  if (foreign !== undefined) return foreign;
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    return badRequest('the only transfer coding that is understood is "chunked"');
  }
  return hasDotSegment(request.url ?? '') ? badRequest('the path must not contain dot segments') : undefined;
}

/** A request id of the caller is used when it cannot break a log line or header. */
function saneId(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'string' && /^[\w.:-]{1,128}$/.test(header) ? header : undefined;
}
