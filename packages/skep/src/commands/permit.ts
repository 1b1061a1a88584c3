import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { parseRight } from '../permissions/right.ts';
import { changeRights } from '../run/change-rights.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';

export const permit = defineCommand({
  usage: 'skep permit [flags] NAME HOST[:PORT]|PATH[:ro|:rw]...',
  summary: 'Let a server reach a host, or see a path of this machine',
  description: [
    'A host without a port is permitted at the ports that its profile lists, at any where it lists none; :PORT is for all hosts that it lists; .example.com is a domain with all below it. A path is seen in the same place, read-only unless :rw says otherwise. A server that runs is started again.',
  ],
  examples: [
    { command: 'skep permit github api.github.com:443', what: 'What skep status says was refused' },
    { command: 'skep permit filesystem ~/notes:rw', what: 'A folder, to read and write' },
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
    await changeRights({ name, how: 'permit', rights, restart: !values.noRestart }, context);
  },
});
