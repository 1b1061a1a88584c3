import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';

/** What passes the proxy. */
export const toolSettings = settingsOf({ group: 'Tools, authorization and audit', notYet: true }, [
  flag('strings', 'tools', 'Offer only these tools; repeatable', { key: 'tools_filter', placeholder: 'a,b' }),
  flag('json-file', 'tools-override', 'JSON file that renames and redescribes tools', {
    key: 'tools_override',
    placeholder: 'file',
  }),
  flag('path', 'authz-config', 'Authorization configuration file', {
    key: 'authz_config_path',
    placeholder: 'file',
  }),
  flag('path', 'audit-config', 'Audit configuration file', { key: 'audit_config_path', placeholder: 'file' }),
  flag('bool', 'enable-audit', 'Audit with the default configuration', { default: false }),
  flag('list', 'webhook-config', 'Webhook configuration file; repeatable, files are merged', {
    placeholder: 'file',
  }),
]);
