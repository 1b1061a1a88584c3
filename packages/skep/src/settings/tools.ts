import { settingsOf } from '@skep/core/settings/define-settings.ts';

/** What passes the proxy. */
export const toolSettings = settingsOf('Tools, authorization and audit', [
  {
    kind: 'strings',
    flag: 'tools',
    key: 'tools_filter',
    brief: 'Offer only these tools; repeatable',
    placeholder: 'a,b',
    notYet: true,
  },
  {
    kind: 'json-file',
    flag: 'tools-override',
    key: 'tools_override',
    brief: 'JSON file that renames and redescribes tools',
    placeholder: 'file',
    notYet: true,
  },
  {
    kind: 'path',
    flag: 'authz-config',
    key: 'authz_config_path',
    brief: 'Authorization configuration file',
    placeholder: 'file',
    notYet: true,
  },
  {
    kind: 'path',
    flag: 'audit-config',
    key: 'audit_config_path',
    brief: 'Audit configuration file',
    placeholder: 'file',
    notYet: true,
  },
  {
    kind: 'bool',
    flag: 'enable-audit',
    brief: 'Audit with the default configuration',
    default: false,
    notYet: true,
  },
  {
    kind: 'list',
    flag: 'webhook-config',
    brief: 'Webhook configuration file; repeatable, files are merged',
    placeholder: 'file',
    notYet: true,
  },
]);
