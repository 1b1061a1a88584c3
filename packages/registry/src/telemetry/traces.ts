import type { Tracing, SpanOptions } from '@skep/core/telemetry/tracing.ts';
import type { RequestObserver } from '../api/http/observe-requests.ts';
import type { Store } from '../store/store.ts';
import type { SyncEvent } from '../sync/source-loop.ts';
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

/** Operations that are asked for all the time and do next to nothing. */
const UNTRACED = new Set(['ping', 'close']);

/** The store with a span `dbService.<Operation>` around each operation. Arguments stay out of it. */
export function tracedStore<S extends Store>(store: S, tracing: Tracing): S {
  const traced = Object.entries(store).map(([name, member]: [string, unknown]) => {
    if (typeof member !== 'function' || UNTRACED.has(name)) return [name, member];
    const inSpan = (...given: unknown[]): unknown => {
      const result: unknown = Reflect.apply(member, store, given);
      return result instanceof Promise ? tracing.inSpan({ name: operation(name) }, () => result) : result;
    };
    return [name, inSpan];
  });
  return { ...store, ...Object.fromEntries(traced) };
}

function operation(name: string): string {
  return `dbService.${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}

/** A synchronisation that has ended, as a span (docs/behaviour/registry.md#traces). */
export function syncSpan({ source, kind, duration, outcome, failure, status }: SyncEvent): SpanOptions {
  const { server, skill, plugin } = status.counts;
  return {
    name: 'sync.performRegistrySync',
    attributes: {
      'registry.name': source,
      'registry.type': kind,
      'sync.duration_seconds': duration / 1000,
      'sync.success': outcome === 'success',
      'sync.servers': server,
      'sync.skills': skill,
      'sync.plugins': plugin,
      ...(failure === undefined ? {} : { 'error.type': failure }),
    },
  };
}
