import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { parseRight } from '../permissions/right.ts';
import { changeRights } from '../run/change-rights.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';

export const deny = defineCommand({
  usage: 'skep deny [flags] NAME [HOST[:PORT]|PATH...]',
  summary: 'Take away what a server may reach or see',
  description: [
    'A server without its last host or port reaches nothing. One that may connect to any host has to be run again with a profile that lists hosts; --isolate-network keeps it from this machine and private hosts. A server that runs is started again.',
  ],
  examples: [
    { command: 'skep deny github api.github.com', what: 'It is not reached any more' },
    { command: 'skep deny filesystem ~/notes', what: 'The folder is not seen any more' },
    { command: 'skep deny github --isolate-network', what: 'It connects only to what its profile allows' },
  ],
  positionals: [
    { name: 'NAME', required: true },
    { name: 'HOST[:PORT]|PATH', required: false, variadic: true },
  ],
  settings: [
    ...settingsOf({ group: 'Rights' }, [
      flag('bool', 'isolate-network', 'Every connection that its profile does not allow', { default: false }),
    ]),
    ...settingsOf({ group: 'Restart' }, [
      flag('bool', 'no-restart', 'Leave it running as it is until it is started again', { default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [name = '', ...texts] }, context) {
    checkWorkloadName(name);
    const { isolateNetwork: isolated, noRestart } = values;
    if (texts.length === 0 && !isolated) {
      throw new SkepError('usage/missing-argument', {
        message: 'missing argument HOST[:PORT]|PATH',
        hint: 'name what to take away, or give --isolate-network',
      });
    }
    const rights = texts.map((text) => parseRight(text, context.cwd));
    await ensureHosted(context);
    await changeRights({ name, how: 'deny', rights, isolated, restart: !noRestart }, context);
  },
});
