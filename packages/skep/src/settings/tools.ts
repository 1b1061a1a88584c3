import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import {
  exactly,
  listOf,
  noNul,
  optional,
  orEmpty,
  recordOf,
  text,
  type ShapeType,
} from '@skep/core/settings/shape.ts';

/** By the server's own name of a tool, how clients see it. */
export const overridesShape = recordOf(exactly({ name: optional(text), description: optional(text) }));
export type ToolOverrides = ShapeType<typeof overridesShape>;

/** What passes the proxy. */
export const toolSettings = settingsOf({ group: 'Tools, authorization and audit', notYet: true }, [
  flag('list', 'tools', 'Offer only these tools, by the names that clients see; repeatable', {
    key: 'tools_filter',
    stored: orEmpty<readonly string[] | undefined>(listOf(noNul), undefined),
    placeholder: 'a,b',
    notYet: false,
  }),
  flag('json-file', 'tools-override', 'JSON file that renames and redescribes tools', {
    key: 'tools_override_path',
    local: true,
    placeholder: 'file',
    notYet: false,
  }),
  flag('path', 'authz-config', 'Authorization configuration file', {
    key: 'authz_config_path',
    local: true,
    placeholder: 'file',
    notYet: false,
  }),
  flag('path', 'audit-config', 'Audit configuration file (JSON or YAML)', {
    key: 'audit_config_path',
    local: true,
    placeholder: 'file',
    notYet: false,
  }),
  flag('bool', 'enable-audit', 'Audit with the default configuration', { default: false, notYet: false }),
  flag('list', 'webhook-config', 'Webhook configuration file; repeatable, files are merged', {
    placeholder: 'file',
    notYet: false,
  }),
]);
