import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import type { RequestObserver } from '../api/http/observe-requests.ts';
import { UNKNOWN_ROUTE } from './http-metrics.ts';

/**
 * A span `{METHOD} {route}` for every request (docs/behaviour/registry.md#traces), in the caller's trace if there is
 * one. Paths are those of the table: what callers write into a URL stays out of names.
 */
export function traceRequests(tracing: Tracing): RequestObserver {
  return {
    begin: (request) => {
      const { method, headers, id } = request;
      const attributes = { 'http.request.method': method, 'url.scheme': 'http', 'skep.request_id': id };
      request.span = tracing.startServerSpan({ name: method, attributes }, headers);
    },
    end: ({ request, status }) => {
      const { span, failure, pattern = UNKNOWN_ROUTE } = request;
      if (span === undefined) return;
      span.updateName(`${request.method} ${pattern}`);
      span.setAttributes({ 'http.route': pattern, 'http.response.status_code': status });
      if (failure !== undefined) span.setAttribute('error.type', failure.code);
      if (status >= 500) tracing.fail(span);
      span.end();
    },
  };
}
