import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { silentLog } from '../log/log.ts';
import { SkepError } from '../errors/skep-error.ts';
import { ActiveSpan } from './active-span.ts';
import { collectorOfFile } from './collector.fixture.ts';
import { openTelemetry } from './open-telemetry.ts';
import type { TelemetrySettings } from './telemetry.ts';

const collector = collectorOfFile();
const { received } = collector;

const settings = (given: Partial<TelemetrySettings> = {}): TelemetrySettings => ({
  serviceName: 'skep-test',
  serviceVersion: '1.2.3',
  endpoint: { url: collector.endpoint },
  tracing: { sampling: 1 },
  metrics: 'on',
  ...given,
});

test('metrics and spans reach a collector before close resolves', async () => {
  received.length = 0;
  const active = new ActiveSpan();
  const telemetry = openTelemetry(settings(), { log: silentLog, active });
  telemetry.meter?.createCounter('skep.things').add(3, { kind: 'bee' });
  const ids = await telemetry.tracing?.inSpan({ name: 'outer' }, async () => {
    await setImmediate();
    return telemetry.tracing?.inSpan({ name: 'inner' }, () => Promise.resolve(active.ids()));
  });
  await telemetry.close();
  await telemetry.close();

  const paths = received.map(({ path }) => path).toSorted();
  expect(paths).toEqual(['/v1/metrics', '/v1/traces']);
  expect(new Set(received.map(({ type }) => type))).toEqual(new Set(['application/x-protobuf']));
  const traces = JSON.parse(received.find(({ path }) => path === '/v1/traces')?.body ?? '');
  const spans: { name: string; traceId: string; spanId: string; parentSpanId?: string }[] =
    traces.resourceSpans[0].scopeSpans[0].spans;
  const [outer, inner] = ['outer', 'inner'].map((name) => spans.find((span) => span.name === name));
  expect(inner?.parentSpanId).toBe(outer?.spanId);
  expect(ids).toEqual({ trace_id: inner?.traceId, span_id: inner?.spanId });
  const resource = JSON.stringify(traces.resourceSpans[0].resource);
  expect(resource).toContain('skep-test');
  expect(resource).toContain('1.2.3');
  expect(received.find(({ path }) => path === '/v1/metrics')?.body).toContain('skep.things');
});

test('a scrape shows counters in the Prometheus text format', async () => {
  const telemetry = openTelemetry(settings({ endpoint: 'none', tracing: 'off' }), {
    log: silentLog,
    active: new ActiveSpan(),
  });
  telemetry.meter?.createCounter('skep.things').add(3, { kind: 'bee' });
  telemetry.meter?.createHistogram('skep.wait', { unit: 's' }).record(1);
  const text = await telemetry.scrape?.();
  expect(text).toMatch(/^skep_wait_seconds_count\{[^}]*\} 1/mu);
  expect(text).toMatch(/^skep_things_total\{kind="bee"[^}]*\} 3/mu);
  expect(telemetry.tracing).toBeUndefined();
  await telemetry.close();
});

test('what is pushed is not kept for a scrape that never comes, and a late one shows all of it', async () => {
  const telemetry = openTelemetry(settings({ tracing: 'off', pushEveryMs: 20 }), {
    log: silentLog,
    active: new ActiveSpan(),
  });
  const counter = telemetry.meter?.createCounter('skep.things');
  let counted = 0;
  const pushes = async (count: number): Promise<void> => {
    for (let push = 0; push < count; push += 1) {
      for (let kind = 0; kind < 1_000; kind += 1) counter?.add(1, { kind });
      counted += 1;
      await once(collector.server, 'request');
      received.length = 0;
    }
  };
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heap = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  await pushes(5);
  const before = heap();
  await pushes(30);
  expect(heap() - before).toBeLessThan(1_000_000);
  expect(await telemetry.scrape?.()).toContain(
    `skep_things_total{kind="7",otel_scope_name="skep-test"} ${counted}\n`,
  );
  await telemetry.close();
});

test('what is off is not there', async () => {
  const telemetry = openTelemetry(settings({ metrics: 'off', tracing: 'off' }), {
    log: silentLog,
    active: new ActiveSpan(),
  });
  expect([telemetry.meter, telemetry.tracing, telemetry.scrape]).toEqual([undefined, undefined, undefined]);
  await telemetry.close();
});

test.each([
  ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', true],
  ['00-00000000000000000000000000000000-b7ad6b7169203331-01', false],
  ['not a traceparent', false],
])('a request with traceparent %s joins the trace of its caller: %s', async (traceparent, joins) => {
  const active = new ActiveSpan();
  const telemetry = openTelemetry(settings({ metrics: 'off', endpoint: 'none' }), { log: silentLog, active });
  const span = telemetry.tracing?.startServerSpan({ name: 'GET' }, { traceparent });
  expect(span?.spanContext().traceId === '0af7651916cd43dd8448eb211c80319c').toBe(joins);
  span?.end();
  await telemetry.close();
});

test('a failed span carries the code of the failure and none of its text', async () => {
  received.length = 0;
  const telemetry = openTelemetry(settings({ metrics: 'off' }), { log: silentLog, active: new ActiveSpan() });
  const failure = new SkepError('fetch/timeout', { message: 'https://ann:hunter2@host' });
  await expect(telemetry.tracing?.inSpan({ name: 'failing' }, () => Promise.reject(failure))).rejects.toBe(
    failure,
  );
  await telemetry.close();
  expect(received[0]?.body).toContain('fetch/timeout');
  expect(received[0]?.body).not.toContain('hunter2');
});

test('a collector that refuses is reported once, and again when it is back', async () => {
  collector.status = 400;
  const lines: string[] = [];
  const log = {
    ...silentLog,
    warn: (_: object, message: string) => lines.push(`warn ${message}`),
    info: (_: object, message: string) => lines.push(`info ${message}`),
  };
  const telemetry = openTelemetry(settings({ tracing: 'off', pushEveryMs: 20 }), {
    log,
    active: new ActiveSpan(),
  });
  telemetry.meter?.createCounter('skep.things').add(1);
  received.length = 0;
  while (received.length < 3) await once(collector.server, 'request');
  collector.status = 200;
  while (lines.length < 2) await once(collector.server, 'request');
  await telemetry.close();
  expect(lines).toEqual(['warn telemetry cannot be sent', 'info telemetry is sent again']);
});
