import { AsyncLocalStorage } from 'node:async_hooks';
import type { Span } from '@opentelemetry/api';

/** Members of a log line that lead from it to its trace. */
export interface TraceIds {
  readonly trace_id: string;
  readonly span_id: string;
}

/**
 * Which span the running code belongs to, through every await. An object of its own instead of OpenTelemetry's global
 * context: two programs in one process, as in tests, keep their traces apart.
 */
export class ActiveSpan {
  readonly #storage = new AsyncLocalStorage<Span>();

  current(): Span | undefined {
    return this.#storage.getStore();
  }

  run<T>(span: Span, work: () => T): T {
    return this.#storage.run(span, work);
  }

  /** Undefined outside of spans. */
  ids(): TraceIds | undefined {
    const span = this.current();
    return span === undefined ? undefined : traceIds(span);
  }
}

export function traceIds(span: Span): TraceIds {
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
}
