import { SkepError } from '@skep/core/errors/skep-error.ts';
import { defineSettings } from '@skep/core/settings/define-settings.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { openClient } from '../cli/open-client.ts';
import { openProgress } from '../print/progress.ts';
import { readyToStart } from '../run/ready-to-start.ts';
import { startEvents } from '../run/start-events.ts';
import { loadRunConfig } from '../run-config/file.ts';
import { givenLimits } from '../run-config/proxy-limits.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { eachOf } from '../workloads/each-of.ts';
import { checkSelection, selectionSettings } from '../workloads/select.ts';
import { viewWorkloads } from '../workloads/view.ts';

const rows = defineSettings([
  ...selectionSettings,
  {
    name: 'foreground',
    kind: 'bool',
    flag: 'foreground',
    short: 'f',
    group: 'Selection',
    brief: 'Stay attached; Ctrl-C removes the server, a killed command leaves it running',
    default: false,
  },
  ...proxySettings,
  ...commonSettings,
]);

export const start = defineCommand({
  usage: 'skep start [flags] [NAME...]',
  summary: 'Start stopped servers again, on the URL they had',
  positionals: [{ name: 'NAME', variadic: true }],
  settings: rows,
  async run({ values, settings, positionals }, context) {
    const limits = givenLimits(settings);
    const { names } = checkSelection({ names: positionals, all: values.all, group: values.group }, 'start');
    const { terminal, signal } = context;
    await ensureHosted(context);
    const chosen = names.length > 0 ? names : (await viewWorkloads(context)).map((view) => view.name);
    if (values.foreground) {
      const [only] = chosen;
      if (only === undefined || chosen.length > 1) {
        throw new SkepError('usage/conflict', { message: '--foreground takes exactly one name' });
      }
      return startHere(only, context, limits);
    }
    const client = openClient(context);
    const progress = openProgress(terminal);
    try {
      await eachOf(chosen, async (name) => {
        await readyToStart(name, context, { report: progress, limits });
        await client.start(name, { signal, tell: startEvents(progress, terminal) });
      });
    } finally {
      progress.end();
    }
  },
});

async function startHere(name: string, context: Context, limits: Partial<RunConfig>): Promise<void> {
  const progress = openProgress(context.terminal);
  try {
    await readyToStart(name, context, { report: progress, limits });
  } finally {
    progress.end();
  }
  const { hostHere } = await import('../run/host-here.ts');
  return hostHere(await loadRunConfig(context.places, name), context);
}
