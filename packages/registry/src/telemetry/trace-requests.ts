import type { Span } from '@opentelemetry/api';
import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { RequestObserver } from '../api/observe-requests.ts';
import { UNKNOWN_ROUTE } from './http-metrics.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of this request; undefined where requests are not traced. */
    span: Span | undefined;
  }
}

/**
 * A span `{METHOD} {route}` for every request (specification §6.3), in the caller's trace if there is one. Paths are
 * those of the table: what callers write into a URL stays out of names.
 */
export function traceRequests(tracing: Tracing): RequestObserver {
  return {
    begin: (request) => {
      const { method, headers, id } = request;
      const attributes = { 'http.request.method': method, 'url.scheme': 'http', 'skep.request_id': id };
      request.span = tracing.startServerSpan({ name: method, attributes }, headers);
    },
    end: ({ request, pattern = UNKNOWN_ROUTE, status }) => {
      const { span, failure } = request;
      if (span === undefined) return;
      span.updateName(`${request.method} ${pattern}`);
      span.setAttributes({ 'http.route': pattern, 'http.response.status_code': status });
      if (failure !== undefined) span.setAttribute('error.type', failure.code);
      if (status >= 500) tracing.fail(span);
      span.end();
    },
  };
}

/** Everything that a request does belongs to its span. After `observeRequests`, which starts it. */
export function enterSpans(server: FastifyInstance, tracing: Tracing): void {
  server.addHook('onRequest', (request: FastifyRequest, _reply, done) => {
    if (request.span === undefined) done();
    else tracing.within(request.span, done);
  });
}
