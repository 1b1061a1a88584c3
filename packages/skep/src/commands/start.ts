import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { planStart } from '../plan/plan-start.ts';
import { openProgress } from '../print/progress.ts';
import { givenLimits } from '../run-config/proxy-limits.ts';
import { carryOut, surroundingsOf } from '../run/carry-out.ts';
import { readStatus } from '../supervisor/state.ts';
import { checkSelection, selectionSettings, eachOf } from '../workloads/select.ts';
import { viewWorkloads } from '../workloads/view.ts';

export const start = defineCommand({
  usage: 'skep start [flags] [NAME...]',
  summary: 'Start stopped servers again, on the URL they had',
  positionals: [{ name: 'NAME', variadic: true }],
  settings: [
    ...selectionSettings,
    ...settingsOf({ group: 'Selection' }, [
      flag(
        'bool',
        'foreground',
        'Stay attached; Ctrl-C removes the server, a killed command leaves it running',
        { short: 'f', default: false },
      ),
    ]),
    ...proxySettings,
    ...commonSettings,
  ],
  async run({ values, settings, positionals }, context) {
    const limits = givenLimits(settings);
    const { names } = checkSelection(positionals, values, 'start');
    await ensureHosted(context);
    const chosen = names.length > 0 ? names : (await viewWorkloads(context)).map((view) => view.name);
    const [only] = chosen;
    if (values.foreground && (only === undefined || chosen.length > 1)) {
      throw new SkepError('usage/conflict', { message: '--foreground takes exactly one name' });
    }
    const progress = openProgress(context.terminal);
    await eachOf(chosen, async (name) => {
      const isRunning = (await readStatus(context.places, name))?.status === 'running';
      const request = { name, isRunning, foreground: values.foreground, limits };
      await carryOut(await planStart(request, surroundingsOf(context)), context, progress);
    });
  },
});
