import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { undoUpgrade, upgradeWorkload } from '../run/upgrade.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { checkSelection, selectedNames, selectionSettings, throwFirst } from '../workloads/select.ts';
import type { Failure } from '../workloads/select.ts';

export const upgrade = defineCommand({
  usage: 'skep upgrade [flags] [NAME...]',
  summary: 'Replace servers by newer versions, on the same URL',
  description: [
    'A server of the catalogue becomes what its entry names now, a package its newest version, an image what its tag means now. Name, URL, group, rights and data stay. What changes is shown first; a version that does not start is taken back.',
  ],
  positionals: [{ name: 'NAME', variadic: true }],
  settings: [
    ...selectionSettings,
    ...settingsOf({ group: 'Upgrade' }, [
      flag('string', 'to', 'Version of the package, or tag of the image', { placeholder: 'version' }),
      flag('bool', 'dry-run', 'Say what would change, and change nothing', { default: false }),
      flag('bool', 'undo', 'Go back to the version before the last upgrade; data stays as it is', {
        default: false,
        excludes: ['to', 'dryRun'],
      }),
      flag('bool', 'yes', 'Ask nothing', { short: 'y', default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals }, context) {
    const { places, signal, terminal } = context;
    const selection = await checkSelection(positionals, values, { command: 'upgrade', places });
    const { to, yes, dryRun, undo } = values;
    await ensureHosted(context);
    const names = (await selectedNames(selection, context)).map(checkWorkloadName);
    if (to !== undefined && names.length !== 1) {
      throw new SkepError('usage/conflict', { message: '--to takes exactly one name' });
    }
    if (names.length === 0) terminal.out(`No workloads found${selection.where}\n`);
    const failures: Failure[] = [];
    // One after the other, because each may ask.
    for (const name of names) {
      try {
        await (undo ? undoUpgrade(name, context) : upgradeWorkload({ name, to, yes, dryRun }, context));
      } catch (error) {
        if (signal.aborted) throw error;
        failures.push({ name, error });
      }
    }
    throwFirst(failures, names.length);
  },
});
