import type { Meter, Span } from '@opentelemetry/api';
import { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import type { IncomingHeaders, Tracing } from '@skep/core/telemetry/tracing.ts';
import { BoundedNames } from '../call/bounded-names.ts';
import type { Call } from '../call/call.ts';
import type { ToolCounts } from '../call/tool-counts.ts';
import { opensStream, WatchedCall, type CallEnd } from '../call/watch-call.ts';
import { REQUEST_META } from '../message/envelope.ts';
import { member, memberAt, type Message } from '../message/json-rpc.ts';
import type { Part, PartServices } from './part.ts';
import {
  askedAttributes,
  errorLabel,
  errorType,
  shownPath,
  withLegacy,
  type Attributes,
} from './telemetry/attributes.ts';
import { knownOf, methodLabel, namedBy, ThingLabels, verbLabel, type NamedThing } from './telemetry/names.ts';
import type { ProxyTelemetry } from './telemetry/settings.ts';

/**
 * Spans and metrics of every call that the parser has let through (docs/behaviour/proxy.md#telemetry). The SDK is loaded here,
 * and nowhere else. Nothing that it does can fail a call.
 */
export async function openProxyTelemetry(settings: ProxyTelemetry, services: PartServices): Promise<Part> {
  const { openTelemetry } = await import('@skep/core/telemetry/open-telemetry.ts');
  const { ca, ...others } = settings;
  const telemetry = openTelemetry(
    { ...others, ...(ca === undefined ? {} : { ca }) },
    { log: services.log, active: new ActiveSpan() },
  );
  const { tracing, meter, scrape } = telemetry;
  const spans = tracing && new CallSpans(tracing, settings, services);
  const metrics = meter && new CallMetrics(meter, services);
  return {
    steps: {
      async telemetry(call, next) {
        if (call.isOwn) return next();
        // What is packed cannot be looked into.
        delete call.req.headers['accept-encoding'];
        const watched = new WatchedCall(call, services.clock);
        const message = call.incoming?.message;
        const thing = namedBy(message);
        const span = spans?.begin(call, thing);
        const facts: CallFacts = {
          verb: verbLabel(call.req.method),
          method: methodLabel(message),
          httpVersion: call.req.httpVersion,
          isStream: opensStream(call),
          thing,
        };
        if (facts.isStream) metrics?.watchStream(call);
        try {
          await next();
        } finally {
          watched.settle(call, (end) => {
            if (span) spans?.end(span, end);
            metrics?.record(facts, end);
          });
        }
      },
    },
    ...(settings.scrapes && scrape !== undefined ? { scrape } : {}),
    close: () => telemetry.close(),
  };
}

/** What of a call its metrics tell. */
interface CallFacts {
  readonly verb: string;
  readonly method: string;
  readonly httpVersion: string;
  readonly isStream: boolean;
  readonly thing: NamedThing | undefined;
}

class CallSpans {
  readonly #tracing: Tracing;
  readonly #settings: ProxyTelemetry;
  readonly #services: PartServices;
  readonly #environment: Attributes;
  /** A client can ask for as many as it likes. */
  readonly #paths = new BoundedNames();

  constructor(tracing: Tracing, settings: ProxyTelemetry, services: PartServices) {
    this.#tracing = tracing;
    this.#settings = settings;
    this.#services = services;
    this.#environment = Object.fromEntries(
      Object.entries(settings.environment).map(([name, value]) => [`environment.${name}`, value]),
    );
  }

  /** In the trace that the client names, in its message before its headers; the server hears of it in the same places. */
  begin(call: Call, thing: NamedThing | undefined): Span {
    const { req, incoming } = call;
    const name = this.#nameOf(call, thing);
    const span = this.#tracing.startServerSpan({ name }, contextIn(incoming?.message, req.headers));
    const baggage = saidIn(incoming?.message, 'baggage') === undefined ? req.headers['baggage'] : undefined;
    call.trace = { ...this.#tracing.carried(span), ...(typeof baggage === 'string' && { baggage }) };
    Object.assign(req.headers, call.trace);
    if (span.isRecording())
      this.#add(span, { ...askedAttributes(call, thing, this.#services), ...this.#environment });
    return span;
  }

  end(span: Span, end: CallEnd): void {
    const failure = errorType(end);
    if (span.isRecording()) {
      this.#add(span, {
        ...(end.status === undefined ? {} : { 'http.response.status_code': end.status }),
        'http.response.body.size': end.bytes,
        ...(failure === undefined ? {} : { 'error.type': failure }),
      });
      if (this.#settings.legacyNames) span.setAttribute('http.duration_ms', end.ms);
    }
    if (end.status === undefined || end.status >= 500) this.#tracing.fail(span);
    span.end();
  }

  /** Of as few kinds as there are methods, tools, prompts and paths. */
  #nameOf(call: Call, thing: NamedThing | undefined): string {
    if (opensStream(call)) return 'sse.connection_established';
    const method = methodLabel(call.incoming?.message);
    if (thing !== undefined) return `${method} ${thing.name.slice(0, 128).toWellFormed()}`;
    return method === '' ? `HTTP ${this.#paths.label(shownPath(call), 'taken')}` : method;
  }

  #add(span: Span, attributes: Attributes): void {
    const { legacyNames } = this.#settings;
    span.setAttributes(legacyNames ? withLegacy(attributes) : attributes);
    if (!legacyNames) return;
    if ('rpc.system.name' in attributes) span.setAttribute('rpc.service', 'mcp');
    if ('network.transport' in attributes) span.setAttribute('mcp.transport', this.#services.transport);
  }
}

/** The trace that a message belongs to, as its `_meta` says (MCP 2026-07-28), else its headers. */
function contextIn(message: Message | undefined, headers: IncomingHeaders): IncomingHeaders {
  const said = (name: string): string | string[] | undefined => saidIn(message, name) ?? headers[name];
  return { traceparent: said('traceparent'), tracestate: said('tracestate') };
}

function saidIn(message: Message | undefined, name: string): string | undefined {
  const value = member(memberAt(message?.value, REQUEST_META), name);
  return typeof value === 'string' ? value : undefined;
}

const SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

class CallMetrics {
  readonly #labels = new ThingLabels();
  readonly #own: Attributes;
  readonly #pipe: Attributes;
  readonly #requests;
  readonly #duration;
  readonly #operations;
  readonly #streams;

  constructor(meter: Meter, { name, transport, toolCounts }: PartServices) {
    const seconds = { unit: 's', advice: { explicitBucketBoundaries: SECONDS } };
    this.#own = { server: name, transport };
    this.#pipe = {
      'network.transport': transport === 'stdio' ? 'pipe' : 'tcp',
      'network.protocol.name': 'http',
    };
    this.#requests = meter.createCounter('skep.mcp.requests', { description: 'Requests of clients' });
    this.#duration = meter.createHistogram('skep.mcp.request.duration', {
      ...seconds,
      description: 'From request to answer',
    });
    this.#operations = meter.createHistogram('mcp.server.operation.duration', {
      ...seconds,
      description: 'Duration of MCP requests and notifications',
    });
    this.#streams = meter.createUpDownCounter('skep.mcp.active_connections', {
      description: 'Event streams that are open',
    });
    observeTools(meter, toolCounts, name);
  }

  record({ verb, method, httpVersion, isStream, thing }: CallFacts, end: CallEnd): void {
    const { status = 499 } = end;
    const failure = errorLabel(end);
    const name = thing === undefined ? '' : this.#labels.label(thing, knownOf(end));
    const labels = {
      ...this.#own,
      method: verb,
      status_code: String(status),
      status: status >= 400 ? 'error' : 'success',
      mcp_method: method,
      mcp_resource_id: name,
    };
    this.#requests.add(1, labels);
    if (isStream) return;
    this.#duration.record(end.ms / 1000, labels);
    if (method === '') return;
    this.#operations.record(end.ms / 1000, {
      ...this.#pipe,
      'network.protocol.version': httpVersion,
      'mcp.method.name': method,
      'jsonrpc.protocol.version': '2.0',
      ...(failure === undefined ? {} : { 'error.type': failure }),
      ...(thing?.kind === 'tool'
        ? { 'gen_ai.tool.name': name, 'gen_ai.operation.name': 'execute_tool' }
        : {}),
      ...(thing?.kind === 'prompt' ? { 'gen_ai.prompt.name': name } : {}),
    });
  }

  /** Counts a stream while it is open. */
  watchStream({ res }: Call): void {
    const labels = { ...this.#own, connection_type: 'sse' };
    const streams = this.#streams;
    if (res.destroyed) return;
    streams.add(1, labels);
    res.once('close', () => streams.add(-1, labels));
  }
}

/** The counts that `skep status` shows. */
function observeTools(meter: Meter, counts: ToolCounts, server: string): void {
  meter
    .createObservableCounter('skep.mcp.tool_calls', { description: 'Calls of tools' })
    .addCallback((result) => {
      for (const { name, calls, errors } of counts.all) {
        result.observe(calls - errors, { server, tool: name, status: 'success' });
        result.observe(errors, { server, tool: name, status: 'error' });
      }
    });
}
