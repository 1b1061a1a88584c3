/** Every type of event that the registry writes. The last four have no request of their own. */
export const AUDIT_EVENTS = [
  'source.list',
  'source.read',
  'source.create',
  'source.update',
  'source.delete',
  'source.entries.list',
  'source.sync.start',
  'source.sync.read',
  'registry.list',
  'registry.read',
  'registry.create',
  'registry.update',
  'registry.delete',
  'registry.entries.list',
  'entry.publish',
  'entry.delete',
  'entry.status.update',
  'entry.validate',
  'entry.claims.read',
  'entry.claims.update',
  'user.info',
  'access.explain',
  'server.list',
  'server.versions.list',
  'server.version.read',
  'skill.list',
  'skill.read',
  'skill.versions.list',
  'skill.version.read',
  'plugin.list',
  'plugin.read',
  'plugin.versions.list',
  'plugin.version.read',
  'auth.unauthenticated',
  'source.sync',
  'config.reconcile',
  'config.reload',
] as const;

export type AuditEventName = (typeof AUDIT_EVENTS)[number];

/** The event of a row of the route table: one, or for a PUT another when it made something. */
export type AuditRule =
  | AuditEventName
  | { readonly created: AuditEventName; readonly otherwise: AuditEventName };

const CREATED = 201;

export function eventOf(rule: AuditRule, status: number): AuditEventName {
  if (typeof rule === 'string') return rule;
  return status === CREATED ? rule.created : rule.otherwise;
}

/** `component` of every event. Audit consumers of ToolHive's registry look for a name of this form. */
export const AUDIT_COMPONENT = 'skep-registry-api';
