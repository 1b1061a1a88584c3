import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { planStart } from '../plan/plan-start.ts';
import { openProgress } from '../print/progress.ts';
import { givenLimits } from '../run-config/proxy-limits.ts';
import { carryOut, surroundingsOf } from '../run/carry-out.ts';
import { ownFilesSettings } from '../settings/limits.ts';
import { readStatus } from '../supervisor/state.ts';
import {
  checkSelection,
  messageOf,
  selectedNames,
  selectionSettings,
  throwFirst,
  tryEach,
  type Failure,
} from '../workloads/select.ts';

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
    ...ownFilesSettings,
    ...proxySettings,
    ...commonSettings,
  ],
  async run({ values, settings, positionals }, context) {
    const { readOnly: read_only } = values;
    const limits = { ...givenLimits(settings), ...(read_only !== undefined && { read_only }) };
    const { places, terminal } = context;
    const selection = await checkSelection(positionals, values, { command: 'start', places });
    await ensureHosted(context);
    const chosen = await selectedNames(selection, context);
    const [only] = chosen;
    if (values.foreground && (only === undefined || chosen.length > 1)) {
      throw new SkepError('usage/conflict', { message: '--foreground takes exactly one name' });
    }
    if (only === undefined) return terminal.out(`No MCP servers found${selection.where}\n`);
    const progress = openProgress(terminal);
    const failures = await tryEach(chosen, async (name) => {
      const isRunning = (await readStatus(places, name))?.status === 'running';
      const request = { name, isRunning, foreground: values.foreground, limits };
      await carryOut(await planStart(request, surroundingsOf(context)), context, progress);
    });
    if (chosen.length > 1) terminal.err(summary(failures, chosen.length));
    throwFirst(failures, chosen.length);
  },
});

/** How many were started; why each of several was not. */
function summary(failures: readonly Failure[], total: number): string {
  const reasons = failures.map((one) => `  ${printable(`${one.name}: ${messageOf(one)}`)}`);
  const counts = `Restart summary: ${total - failures.length} succeeded, ${failures.length} failed`;
  return `${[counts, ...(reasons.length > 1 ? reasons : [])].join('\n')}\n`;
}
