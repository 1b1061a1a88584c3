import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { findCatalogueGroup } from '../catalog/catalogue-groups.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { runGroup } from '../run/run-group.ts';
import { RULE } from '../run-config/group-file.ts';
import { isGroupName } from '../settings/group-name.ts';

export const groupRun = defineCommand({
  usage: 'skep group run [flags] NAME',
  summary: 'Run all servers of a group of the catalogue',
  description: [
    'Nothing is started unless all of them can be planned; of those that then fail, the others are left running.',
  ],
  examples: [
    {
      command: 'skep group run web -e github.LOG_LEVEL=debug',
      what: 'A variable of one of the servers; without it, what is required is asked for',
    },
  ],
  positionals: [{ name: 'NAME', required: true }],
  settings: [
    ...settingsOf({ group: 'Servers' }, [
      flag('string', 'group', 'Group that the servers are put into; made when it is not there', {
        short: 'g',
        placeholder: 'group',
        offers: 'group',
        defaultText: 'the one of the same name',
      }),
      flag('list', 'env', 'Variable of one of the servers; KEY alone takes your own value; repeatable', {
        short: 'e',
        placeholder: 'SERVER.KEY[=VALUE]',
      }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [name = ''] }, context) {
    const { places, program, signal } = context;
    const asking = { config: await loadAppConfig(places), version: program.version, signal };
    const { servers } = await findCatalogueGroup(name, asking);
    const group = values.group ?? name;
    if (!isGroupName(group)) {
      const message = `invalid group name ${JSON.stringify(group)}`;
      const hint = values.group === undefined ? `choose another with --group: ${RULE}` : RULE;
      throw new SkepError('usage/invalid-value', { message, hint });
    }
    await runGroup({ group, servers, env: values.env ?? [] }, context);
  },
});
