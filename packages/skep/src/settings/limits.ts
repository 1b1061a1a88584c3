import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { isLimit, type Limits } from '../permissions/limits.ts';

const limit = (which: keyof Limits): shape.Shape<string | undefined> =>
  shape.optional(shape.textThat((text) => isLimit(which, text), 'is no such limit'));

/** What of its container the server may write. */
export const ownFilesSettings = settingsOf({ group: 'Limits of the server' }, [
  flag('bool', 'read-only', 'Let a container write nowhere but in memory, its data and its mounts', {
    key: 'read_only',
    sparse: true,
    defaultText: 'where the server starts with it',
  }),
]);

/** How much of the machine the server may use; `none` is no limit. */
export const limitSettings = settingsOf({ group: 'Limits of the server' }, [
  flag('string', 'memory', 'Memory, with its files in memory and without swap', {
    key: 'memory',
    stored: limit('memory'),
    placeholder: 'bytes[k|m|g]|none',
    defaultText: '2g',
  }),
  flag('string', 'cpus', 'Processors, such as 0.5 or 2', {
    key: 'cpus',
    stored: limit('cpus'),
    placeholder: 'number|none',
    defaultText: 'none',
  }),
  flag('string', 'pids-limit', 'Processes and threads', {
    key: 'pids_limit',
    stored: limit('pids'),
    placeholder: 'number|none',
    defaultText: '512',
  }),
  flag('string', 'disk', 'Each file that it writes, and in the sandbox all that it keeps', {
    key: 'disk',
    stored: limit('disk'),
    placeholder: 'bytes[k|m|g]|none',
    defaultText: '4g',
  }),
  ...ownFilesSettings,
]);
