import {
  commandDefiner,
  commonSettings as commonSettingsOf,
  formatSettings as formatSettingsOf,
} from '@skep/core/command/command.ts';
import type { Host as CommandHost } from '@skep/core/command/host.ts';
import { flag } from '@skep/core/settings/define-settings.ts';
import { withAliases } from '../config/environment.ts';
import type { Input } from './stream-input.ts';

/** Everything the program takes from around it. Only process.ts makes one from the real process. */
export interface Host extends CommandHost {
  /** Directory for temporary files. */
  readonly temp: string;
  readonly arch: string;
  readonly nodeVersion: string;
  /** For lines that programs read; hears in a callback whether a write worked, as when the reader of a pipe has left. */
  readonly stdout: { write(text: string, written?: (error?: Error | null) => void): unknown };
  readonly stdin: Input;
  /** The program's entry file, for starting threads of it. */
  readonly entry: URL;
  readonly random: () => number;
  readonly randomId: () => string;
  /** Calls back for each request to read files anew (SIGHUP) until the returned function is called. */
  onReload(listener: () => void): () => void;
  /** Gives memory that is not used any more back to the system; takes some 50 ms. */
  releaseMemory(): void;
}

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
