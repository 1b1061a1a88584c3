import {
  type Attributes,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { SkepError } from '../errors/skep-error.ts';
import type { ActiveSpan } from './active-span.ts';

/** Header values as Node gives them. */
export type IncomingHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface SpanOptions {
  readonly name: string;
  readonly attributes?: Attributes;
}

/** Makes spans. Loaded with the SDK only; code that merely has a `Tracing` imports its type. */
export class Tracing {
  readonly #tracer: Tracer;
  readonly #active: ActiveSpan;
  readonly #propagator = new W3CTraceContextPropagator();

  constructor(tracer: Tracer, active: ActiveSpan) {
    this.#tracer = tracer;
    this.#active = active;
  }

  /** A span for a request, in the caller's trace if its `traceparent` is sound (W3C Trace Context §3). */
  startServerSpan({ name, attributes }: SpanOptions, headers: IncomingHeaders): Span {
    const parent = this.#propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter);
    return this.#tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: attributes ?? {} }, parent);
  }

  /** What a request that belongs to `span` carries: `traceparent`, and `tracestate` where there is one. */
  carried(span: Span): Readonly<Record<string, string>> {
    const carrier: Record<string, string> = {};
    this.#propagator.inject(trace.setSpan(ROOT_CONTEXT, span), carrier, defaultTextMapSetter);
    return carrier;
  }

  /** Runs `work` so that spans and log lines made by it belong to `span`. */
  within<T>(span: Span, work: () => T): T {
    return this.#active.run(span, work);
  }

  /** Marks a span whose work failed. */
  fail(span: Span): void {
    span.setStatus({ code: SpanStatusCode.ERROR });
  }

  /** A span of its own for something that has just ended. */
  record({ name, attributes }: SpanOptions, milliseconds: number, outcome: 'success' | 'error'): void {
    const end = Date.now();
    const options = { attributes: attributes ?? {}, startTime: end - milliseconds };
    const span = this.#tracer.startSpan(name, options, ROOT_CONTEXT);
    if (outcome === 'error') this.fail(span);
    span.end(end);
  }

  /** Does `work` in a span below the active one, or in a trace of its own; marks it when that fails. */
  async inSpan<T>({ name, attributes }: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> {
    const active = this.#active.current();
    const parent = active === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, active);
    const span = this.#tracer.startSpan(name, { attributes: attributes ?? {} }, parent);
    try {
      return await this.#active.run(span, () => work(span));
    } catch (error) {
      markFailed(span, error);
      throw error;
    } finally {
      span.end();
    }
  }
}

/** The code alone: messages quote input, and a trace leaves the machine. */
export function markFailed(span: Span, error: unknown): void {
  const type = error instanceof SkepError ? error.code : 'internal/bug';
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
