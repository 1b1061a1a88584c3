import type { AuditEvent, AuditOutcome } from '@skep/core/audit/audit-event.ts';
import { AUDIT_COMPONENT, type AuditEventName } from '../config/audit-events.ts';
import type { ConfigDifference } from '../config/config-difference.ts';
import type { ReconcileReport } from '../store/desired-state.ts';
import type { SyncEvent } from '../sync/source-loop.ts';

interface SystemAction {
  readonly type: AuditEventName;
  readonly outcome: AuditOutcome;
  readonly target: Readonly<Record<string, string>>;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** An event that no caller asked for: a synchronisation, or what a start changed to match the configuration. */
function systemEvent({ type, outcome, target, extra }: SystemAction): AuditEvent {
  return {
    type,
    outcome,
    component: AUDIT_COMPONENT,
    source: { type: 'local', value: 'skep-registry' },
    subjects: { identity: 'system' },
    target,
    metadata: { extra },
  };
}

/** A synchronisation that has ended. */
export function syncEvent({ source, duration, outcome, failure, status }: SyncEvent): AuditEvent {
  return systemEvent({
    type: 'source.sync',
    outcome,
    target: { resource_type: 'source', resource_name: source },
    extra: {
      duration_ms: duration,
      changed: status.changed,
      entries: status.counts,
      ...(failure === undefined ? {} : { reason: failure }),
    },
  });
}

/** What a start or a reload changed in the store: names, by kind of change. */
export function reconcileEvent({ sources, registries, blocked }: ReconcileReport): AuditEvent {
  return systemEvent({
    type: 'config.reconcile',
    outcome: 'success',
    target: { resource_type: 'config' },
    extra: { sources, registries, kept: blocked.map(({ source }) => source) },
  });
}

/** A new configuration was taken over while the program serves; `restart` names what waits for the next start. */
export function reloadEvent(difference: ConfigDifference, restart: readonly string[]): AuditEvent {
  return systemEvent({
    type: 'config.reload',
    outcome: 'success',
    target: { resource_type: 'config' },
    extra: { ...difference, restart },
  });
}
