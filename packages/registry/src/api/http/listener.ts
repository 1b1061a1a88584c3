import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Log } from '@skep/core/log/log.ts';
import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import { AnswersInFlight } from './answers-in-flight.ts';
import { BrokenRequests } from './broken-request.ts';
import { variesBy } from './cors.ts';
import { observeRequests, accessLog, type RequestObserver, type RequestLog } from './observe-requests.ts';
import { readsBesideChanges, type CommitUnderWay } from './reads-beside-changes.ts';
import { ApiRequest } from './request.ts';
import { answerSender, EncodedAnswers } from './send.ts';
import { DEFAULT_REQUEST_MS, steps, stepRunner, type StepOptions } from './steps.ts';

export interface ListenerOptions extends StepOptions, CommitUnderWay {
  readonly log: Log;
  readonly requestLog: RequestLog;
  /** Who else is told of requests: the audit log, metrics, traces. */
  readonly observers?: readonly RequestObserver[];
  /** Makes what a request does part of its trace. */
  readonly tracing?: Tracing | undefined;
  readonly randomId: () => string;
  /** Answers go out encoded where a caller asks for it. */
  readonly compress?: boolean;
  /** Bytes of answers that callers have not read; tests set fewer. */
  readonly mostUnread?: number;
}

const SECONDS = 1000;

/** An HTTP server for some routes of the table, not yet listening. */
export function createListener(options: ListenerOptions): Server {
  const { randomId, requestMs = DEFAULT_REQUEST_MS } = options;
  const broken = new BrokenRequests();
  const take = taker(options);
  const handle = readsBesideChanges((raw, response) => {
    const request = new ApiRequest(raw, response, saneId(raw.headers['x-request-id']) ?? randomId());
    // A connection that a stopping server answers on is not used again.
    if (!server.listening) request.added.push('connection', 'close');
    take(request);
  }, options);
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
function taker(options: ListenerOptions): (request: ApiRequest) => void {
  const { log, requestLog, observers = [], tracing, compress, cors, mostUnread } = options;
  const sender = answerSender({
    vary: variesBy(cors),
    inFlight: new AnswersInFlight(mostUnread),
    encoded: compress === true ? new EncodedAnswers() : undefined,
  });
  const run = stepRunner(steps(options, sender.prepare), sender, log);
  const lines = requestLog === 'none' ? [] : [accessLog(log, requestLog)];
  const observe = observeRequests([...lines, ...observers]);
  return (request) => {
    observe?.(request);
    if (tracing === undefined || request.span === undefined) run(request);
    else tracing.within(request.span, () => run(request));
  };
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
