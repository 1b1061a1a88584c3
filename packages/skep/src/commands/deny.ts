import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { parseRight } from '../permissions/right.ts';
import { changeRights } from '../run/change-rights.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';

export const deny = defineCommand({
  usage: 'skep deny [flags] NAME HOST[:PORT]|PATH...',
  summary: 'Take away what a server may reach or see',
  description: [
    'A server without its last host or port reaches nothing. One that may connect to any host has to be run again with a profile that lists hosts. A server that runs is started again.',
  ],
  examples: [
    { command: 'skep deny github api.github.com', what: 'It is not reached any more' },
    { command: 'skep deny filesystem ~/notes', what: 'The folder is not seen any more' },
  ],
  positionals: [
    { name: 'NAME', required: true },
    { name: 'HOST[:PORT]|PATH', required: true, variadic: true },
  ],
  settings: [
    ...settingsOf({ group: 'Restart' }, [
      flag('bool', 'no-restart', 'Leave it running as it is until it is started again', { default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [name = '', ...texts] }, context) {
    checkWorkloadName(name);
    const rights = texts.map((text) => parseRight(text, context.cwd));
    await ensureHosted(context);
    await changeRights({ name, how: 'deny', rights, restart: !values.noRestart }, context);
  },
});
