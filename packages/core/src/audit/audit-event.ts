/** `application_error`: the transport worked, the answer says it failed. */
export type AuditOutcome = 'success' | 'denied' | 'failure' | 'error' | 'application_error';

/** One thing that happened, without id and time. Never holds a token, or a header that may hold one. */
export interface AuditEvent {
  /** Dotted in the registry (`entry.publish`), underscored in the proxy (`mcp_tool_call`). */
  readonly type: string;
  readonly outcome: AuditOutcome;
  readonly component: string;
  /** The TCP peer, or this program itself. Forwarded headers are noted in `extra`, never trusted. */
  readonly source: {
    readonly type: 'network' | 'local';
    readonly value: string;
    readonly extra?: Readonly<Record<string, string>>;
  };
  /** Who did it, as far as that is known. */
  readonly subjects: Readonly<Record<string, string>>;
  /** On whose behalf, where the token says that it was handed on (RFC 8693 §4.1). */
  readonly delegation?: object | undefined;
  /** To what. */
  readonly target: Readonly<Record<string, string>>;
  readonly metadata: { readonly extra: Readonly<Record<string, unknown>> };
  /** Request and response contents, where they were asked for. */
  readonly data?: unknown;
}

export interface AuditStamp {
  readonly id: string;
  /** RFC 3339 UTC. */
  readonly time: string;
}

/**
 * The event as one line of JSON with its newline, in the shape that ToolHive's audit consumers read
 * (docs/behaviour/registry.md#audit-log).
 */
export function auditLine(event: AuditEvent, { id, time }: AuditStamp): string {
  const { type, outcome, component, source, subjects, delegation, target, metadata, data } = event;
  const line = {
    time,
    level: 'AUDIT',
    msg: 'audit_event',
    audit_id: id,
    type,
    logged_at: time,
    outcome,
    component,
    source,
    subjects,
    ...(delegation === undefined ? {} : { delegation }),
    target,
    metadata,
    ...(data === undefined ? {} : { data }),
  };
  return `${JSON.stringify(line)}\n`;
}

/** Texts that callers choose are cut here, so that a line stays a line. */
export const MAX_FIELD = 512;

/** At most `max` UTF-16 units, no character split; lone surrogates become U+FFFD. */
export function limitedField(text: string, max = MAX_FIELD): string {
  const cut = text.length <= max ? text : text.slice(0, max);
  // Half of a pair at the end would become U+FFFD; dropping it loses nothing a reader could use.
  const whole = cut.length < text.length && /[\uD800-\uDBFF]$/u.test(cut) ? cut.slice(0, -1) : cut;
  return whole.toWellFormed();
}
