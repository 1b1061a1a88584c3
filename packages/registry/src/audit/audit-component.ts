/** `component` of every event. Audit consumers of ToolHive's registry look for a name of this form. */
export const AUDIT_COMPONENT = 'skep-registry-api';
