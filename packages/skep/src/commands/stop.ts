import { hasCode } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import { loadRunConfig } from '../run-config/file.ts';
import { readAddress } from '../supervisor/address.ts';
import { shouldRun } from '../supervisor/state.ts';
import { checkSelection, selectionSettings, eachOf, onlyWaiting } from '../workloads/select.ts';
import { viewWorkloads } from '../workloads/view.ts';

export const stop = defineCommand({
  usage: 'skep stop [flags] [NAME...]',
  summary: 'Stop servers; they can be started again on the same URL',
  positionals: [{ name: 'NAME', variadic: true }],
  settings: [
    ...selectionSettings,
    ...settingsOf({ group: 'Selection' }, [
      flag('int', 'timeout', 'Seconds a server has to end by itself', {
        placeholder: 'seconds',
        default: 10,
        min: 0,
        max: 3600,
      }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals }, context) {
    const { terminal, signal, places, uid, isAlive } = context;
    const selection = await checkSelection(positionals, values, { command: 'stop', places });
    const { names, all, matches, where } = selection;
    const statuses = await ensureHosted(context);
    const views = await viewWorkloads(context, statuses);
    const chosen =
      names.length > 0
        ? names
        : views
            .filter((view) => view.status !== 'unknown' && shouldRun(view.status) && matches(view))
            .map((view) => view.name);
    if (chosen.length === 0) {
      return terminal.out(all ? 'No running workloads to stop\n' : `No running MCP servers found${where}\n`);
    }
    const supervisor = readAddress(places, uid);
    // One that is there may be about to start it.
    const stopped = new Set(
      supervisor && isAlive(supervisor)
        ? []
        : views.filter((view) => view.status === 'stopped').map((view) => view.name),
    );
    const client = new SupervisorClient(context);
    const stopping = eachOf(chosen, async (name) => {
      try {
        // What is not there, or stopped, needs no supervisor.
        await loadRunConfig(places, name);
        const wasRunning = !stopped.has(name) && (await client.stop(name, values.timeout * 1000, { signal }));
        if (wasRunning) terminal.out(`${name}\n`);
        else terminal.err(`Warning: workload "${name}" was not running\n`);
      } catch (error) {
        // Stopping what does not run is no failure: scripts stop before they start.
        if (!hasCode(error, 'workload/not-found') && !hasCode(error, 'run/invalid-name')) throw error;
        terminal.err(`Warning: ${printable(error.message)}\n`);
      }
    });
    await onlyWaiting(stopping);
  },
});
