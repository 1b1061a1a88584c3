import {
  commandDefiner,
  commonSettings as commonSettingsOf,
  formatSettings as formatSettingsOf,
} from '@skep/core/command/command.ts';
import type { Context } from './context.ts';

/** Gives the definition of a command of `skep` its life. */
export const defineCommand = commandDefiner<Context>();

/** Flags that every command has. */
export const commonSettings = commonSettingsOf('Show what is behind an error', { env: 'SKEP_DEBUG' });

/** `--format` of commands that show data. */
export const formatSettings = formatSettingsOf('How to print');
