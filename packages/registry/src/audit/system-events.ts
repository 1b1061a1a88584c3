import type { AuditEvent, AuditOutcome } from '@skep/core/audit/audit-event.ts';
import { AUDIT_COMPONENT, type AuditEventName } from '../config/audit-events.ts';
import type { ConfigDifference } from '../config/config-difference.ts';
import type { ReconcileReport } from '../store/desired-state.ts';
import type { SyncEvent } from '../sync/source-loop.ts';

/** An event that no caller asked for: a synchronisation, or what a start changed to match the configuration. */
function systemEvent(
  type: AuditEventName,
  target: AuditEvent['target'],
  extra: Readonly<Record<string, unknown>>,
  outcome: AuditOutcome = 'success',
): AuditEvent {
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
  const extra = {
    duration_ms: duration,
    changed: status.changed,
    entries: status.counts,
    ...(failure === undefined ? {} : { reason: failure }),
  };
  return systemEvent('source.sync', { resource_type: 'source', resource_name: source }, extra, outcome);
}

/** What a start or a reload changed in the store: names, by kind of change. */
export function reconcileEvent({ sources, registries, blocked }: ReconcileReport): AuditEvent {
  const kept = blocked.map(({ source }) => source);
  return systemEvent('config.reconcile', { resource_type: 'config' }, { sources, registries, kept });
}

/** A new configuration was taken over while the program serves; `restart` names what waits for the next start. */
export function reloadEvent(difference: ConfigDifference, restart: readonly string[]): AuditEvent {
  return systemEvent('config.reload', { resource_type: 'config' }, { ...difference, restart });
}
