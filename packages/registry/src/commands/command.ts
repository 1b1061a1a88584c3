import {
  commandDefiner,
  commonSettings as commonSettingsOf,
  formatSettings as formatSettingsOf,
} from '@skep/core/command/command.ts';
import { flag } from '@skep/core/settings/define-settings.ts';
import { withAliases } from '../config/environment.ts';
import type { Host } from './host.ts';

/** Gives the definition of a command of `skep-registry` its life. */
export const defineCommand = commandDefiner<Host>(withAliases);

/** Flags that every command has. */
export const commonSettings = commonSettingsOf(
  'log everything, and show the cause of an error',
  {},
  'show this help',
);

/** `--format` of commands that show data. */
export const formatSettings = formatSettingsOf('how to print the result');

/** `--config` of commands that cannot do without. */
export function configSetting(brief: string) {
  return flag('path', 'config', brief, { placeholder: 'FILE', required: true });
}
