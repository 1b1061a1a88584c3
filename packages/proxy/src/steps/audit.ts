import { randomUUID } from 'node:crypto';
import { openAuditLog, type AuditLog } from '@skep/core/audit/audit-log.ts';
import { openFileSink } from '@skep/core/audit/file-sink.ts';
import { utcTime } from '@skep/core/time/clock.ts';
import { WatchedCall, type CallEnd } from '../call/watch-call.ts';
import { factsOf, heardOf, outcomeOf, type CallFacts } from './audit/event.ts';
import type { AuditSettings } from './audit/settings.ts';
import type { Part, PartServices } from './part.ts';

/**
 * One event for every call of the chain, refused ones too (docs/behaviour/proxy.md#audit-events). Fails with
 * `audit/unwritable` when the file cannot be opened.
 */
export async function openAudit(settings: AuditSettings, services: PartServices): Promise<Part> {
  const { log, clock, name, trustProxyHeaders } = services;
  const sink = await openFileSink({
    path: settings.path,
    follow: clock,
    onLost: (events, err) => log.error({ err, events }, 'audit events could not be written'),
  });
  const audit = openAuditLog({ sink, filter: settings, now: () => utcTime(clock), randomId: randomUUID });
  const auditing: Auditing = { settings, audit, component: settings.component ?? name };
  return {
    steps: {
      async audit(call, next) {
        if (call.isOwn) return next();
        // What is packed cannot be looked into.
        if (settings.detectsErrors || settings.withResponses) delete call.req.headers['accept-encoding'];
        const watched = new WatchedCall(call, clock);
        try {
          await next();
        } finally {
          const facts = factsOf(call, settings, trustProxyHeaders);
          watched.settle(call, (end) => record(facts, end, auditing));
        }
      },
    },
    close: () => audit.close(),
  };
}

interface Auditing {
  readonly settings: AuditSettings;
  readonly audit: AuditLog;
  readonly component: string;
}

function record(facts: CallFacts, end: CallEnd, { settings, audit, component }: Auditing): void {
  const { transport, request, requestTruncated, ...shown } = facts;
  const { status, unheard, bytes, ms } = end;
  const { error, data } = heardOf(end, settings);
  const kept = Object.entries({ request, response: data.value }).filter(([, value]) => value !== undefined);
  audit.record({
    ...shown,
    outcome: outcomeOf(status ?? unheard, error),
    component,
    metadata: {
      extra: {
        duration_ms: Math.round(ms),
        transport,
        response_size_bytes: bytes,
        ...(status === undefined ? { incomplete: true } : { status }),
        ...(error?.code === undefined ? {} : { jsonrpc_error_code: error.code }),
        ...(error === undefined || error.message === '' ? {} : { jsonrpc_error_message: error.message }),
        ...(requestTruncated ? { request_truncated: true } : {}),
        ...(data.isTruncated ? { response_truncated: true } : {}),
      },
    },
    ...(kept.length === 0 ? {} : { data: Object.fromEntries(kept) }),
  });
}
