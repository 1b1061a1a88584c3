import type { Code } from '@skep/core/errors/codes.ts';
import type { Span } from '@opentelemetry/api';
import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Route } from '../route/route.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Why the request was refused or failed; undefined while it was not. */
    failure: RequestFailure | undefined;
    /** What the handler wants the audit log to hold besides what every request has. */
    facts: Readonly<Record<string, unknown>> | undefined;
    /** Undefined where requests are not traced. */
    span: Span | undefined;
  }
}

export interface RequestFailure {
  readonly code: Code;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** What observers may look at, whichever way a request takes through the server. */
export type ObservedRequest = Pick<
  FastifyRequest,
  | 'id'
  | 'raw'
  | 'params'
  | 'method'
  | 'socket'
  | 'headers'
  | 'body'
  | 'authority'
  | 'failure'
  | 'facts'
  | 'span'
>;

/** A request that is over. */
export interface Exchange {
  readonly request: ObservedRequest;
  /** The row of the table that answered; undefined for unknown paths and refused methods. */
  readonly row: Route | undefined;
  /** The path of the table in `{name}` notation; undefined for unknown paths, so that labels stay few. */
  readonly pattern: string | undefined;
  /** 499 when the caller left before an answer was begun. */
  readonly status: number;
  readonly durationMs: number;
  readonly responseBytes: number;
}

/** Someone who watches requests. Must not throw, and must be quick: it runs between requests. */
export interface RequestObserver {
  readonly begin?: (request: ObservedRequest) => void;
  readonly end: (exchange: Exchange) => void;
}

/** What nginx logs for it; no status that is ever sent. */
const CLIENT_GONE = 499;

/**
 * Calls the observers for every request, also for one whose caller goes away. Returns the function for requests that
 * never reach a hook. Without observers there is no hook: watching for the end of an answer costs as much as a small
 * answer.
 */
export function observeRequests(
  server: FastifyInstance,
  routes: readonly Route[],
  observers: readonly RequestObserver[],
): (request: FastifyRequest, reply: FastifyReply) => void {
  if (observers.length === 0) return () => {};
  const rows = rowsByUrl(routes);
  const begins = observers.flatMap(({ begin }) => begin ?? []);
  const watch = (request: FastifyRequest, reply: FastifyReply): void => {
    const startedAt = performance.now();
    for (const begin of begins) begin(request);
    whenOver(reply.raw, () => {
      const exchange = { ...described(rows, request, reply), durationMs: performance.now() - startedAt };
      for (const { end } of observers) end(exchange);
    });
  };
  server.addHook('onRequest', (request, reply, done) => {
    watch(request, reply);
    done();
  });
  return watch;
}

/** Everything that a request does belongs to its span. After `observeRequests`, which starts it. */
export function enterSpans(server: FastifyInstance, tracing: Tracing): void {
  server.addHook('onRequest', (request: FastifyRequest, _reply, done) => {
    if (request.span === undefined) done();
    else tracing.within(request.span, done);
  });
}

/** Its caller may have left while the request waited for its turn: then nothing tells of that again. */
function whenOver(response: ServerResponse, tell: () => void): void {
  if (response.closed) tell();
  else response.once('close', tell);
}

/** Calls the observers for an answer that is given without the router. */
export type WatchAnswer = (
  request: ObservedRequest,
  response: ServerResponse,
  asked: Pick<Exchange, 'row' | 'pattern' | 'responseBytes'> & { readonly startedAt: number },
) => void;

/** Like `observeRequests`, for requests whose row is known and that are answered at once. Undefined when nobody watches. */
export function watchAnswers(observers: readonly RequestObserver[]): WatchAnswer | undefined {
  if (observers.length === 0) return undefined;
  const begins = observers.flatMap(({ begin }) => begin ?? []);
  return (request, response, { startedAt, ...asked }) => {
    for (const begin of begins) begin(request);
    whenOver(response, () => {
      const { statusCode: status } = response;
      const exchange = { ...asked, request, status, durationMs: performance.now() - startedAt };
      for (const { end } of observers) end(exchange);
    });
  };
}

/** Keys are the router's own notation, which is what a request knows of its row. */
type Rows = ReadonlyMap<string, { readonly pattern: string; readonly methods: ReadonlyMap<string, Route> }>;

function rowsByUrl(routes: readonly Route[]): Rows {
  const rows = new Map<string, { pattern: string; methods: Map<string, Route> }>();
  for (const route of routes) {
    for (const pattern of route.paths) {
      const url = pattern.replaceAll(/\{(\w+)\}/g, ':$1');
      const row = rows.get(url) ?? { pattern, methods: new Map() };
      row.methods.set(route.method, route);
      if (route.method === 'GET') row.methods.set('HEAD', route);
      rows.set(url, row);
    }
  }
  return rows;
}

function described(rows: Rows, request: FastifyRequest, reply: FastifyReply): Omit<Exchange, 'durationMs'> {
  const { raw } = reply;
  const row = rows.get(request.routeOptions?.url ?? '');
  return {
    request,
    row: row?.methods.get(request.method),
    pattern: row?.pattern,
    status: raw.headersSent ? raw.statusCode : CLIENT_GONE,
    responseBytes: Number(reply.getHeader('content-length') ?? 0),
  };
}
