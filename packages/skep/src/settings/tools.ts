import { defineSettings } from '@skep/core/settings/define-settings.ts';

const group = 'Tools, authorization and audit';

/** What passes the proxy. */
export const toolSettings = defineSettings([
  {
    name: 'tools',
    kind: 'strings',
    flag: 'tools',
    key: 'tools_filter',
    group,
    brief: 'Offer only these tools; repeatable',
    placeholder: 'a,b',
    notYet: true,
  },
  {
    name: 'toolsOverride',
    kind: 'json-file',
    flag: 'tools-override',
    key: 'tools_override',
    group,
    brief: 'JSON file that renames and redescribes tools',
    placeholder: 'file',
    notYet: true,
  },
  {
    name: 'authzConfig',
    kind: 'path',
    flag: 'authz-config',
    key: 'authz_config_path',
    group,
    brief: 'Authorization configuration file',
    placeholder: 'file',
    notYet: true,
  },
  {
    name: 'auditConfig',
    kind: 'path',
    flag: 'audit-config',
    key: 'audit_config_path',
    group,
    brief: 'Audit configuration file',
    placeholder: 'file',
    notYet: true,
  },
  {
    name: 'enableAudit',
    kind: 'bool',
    flag: 'enable-audit',
    group,
    brief: 'Audit with the default configuration',
    default: false,
    notYet: true,
  },
  {
    name: 'webhookConfig',
    kind: 'list',
    flag: 'webhook-config',
    group,
    brief: 'Webhook configuration file; repeatable, files are merged',
    placeholder: 'file',
    notYet: true,
  },
]);
