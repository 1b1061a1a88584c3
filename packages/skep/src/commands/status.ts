import { redactUrl } from '@skep/core/log/redact.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { countFacts, readToolCounts, toCountItems } from '../cli/tool-counts.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { permissionCard } from '../permissions/card.ts';
import { findRunConfig } from '../run-config/file.ts';
import { cardFacts, toFacts, type Fact } from '../print/table.ts';
import { dataText } from '../supervisor/kept-data.ts';
import { toJsonText, toStatusItem, uptimeOf } from '../workloads/to-json.ts';
import { formatOfStatus, statusText, timeText } from '../workloads/to-text.ts';
import { readFound, weightOf } from '../supervisor/found-server.ts';
import { toolsText } from '../run/tell-start.ts';
import { missedBy, missedFacts, refusedItems } from '../cli/refused-to.ts';
import { shownUrl, viewWorkload } from '../workloads/view.ts';

export const status = defineCommand({
  usage: 'skep status [flags] NAME',
  summary: 'Show one server',
  positionals: [{ name: 'NAME', required: true }],
  settings: [...formatSettings, ...commonSettings],
  async run({ values, positionals: [name = ''] }, context) {
    await ensureHosted(context);
    const view = await viewWorkload(name, context);
    const now = new Date(context.clock.now());
    const config = await findRunConfig(context.places, view.name);
    const card = config && permissionCard(config);
    const found = await readFound(context.places, view.name);
    const counts = Object.entries(await readToolCounts(context)).find(([one]) => one === view.name)?.[1];
    const missed = config && (await missedBy(config, context));
    if (values.format === 'json')
      return context.terminal.out(
        toJsonText(
          toStatusItem(view, now, {
            card,
            found,
            calls: toCountItems(counts),
            refused: missed ? refusedItems(missed.refused) : null,
            lacks: missed?.lacks ?? [],
          }),
        ),
      );
    const weight = found && weightOf(found);
    const facts: readonly Fact[] = [
      ['Name', view.name],
      ['Status', statusText(view.status), formatOfStatus(statusText(view.status))],
      ['Health', view.context],
      ['Package', view.package],
      ['Remote', view.remoteUrl && redactUrl(view.remoteUrl)],
      ['URL', shownUrl(view)],
      ['Own URL', view.frontUrl === undefined ? undefined : view.url],
      ['Port', String(view.port)],
      ['Transport', view.transport],
      ['Proxy Mode', view.proxyMode],
      ['Server', found?.server && [found.server.name, found.server.version ?? ''].join(' ').trim()],
      ['Tools', weight && toolsText(weight)],
      ...countFacts(counts),
      ...cardFacts(card ?? []),
      ...(config ? missedFacts(config, missed) : []),
      ['Data', await dataText(context.places, name)],
      ['Group', view.group],
      ['Created', timeText(view.createdAt)],
      ['Uptime', uptimeOf(view, now)],
    ];
    context.terminal.out(toFacts(facts, context.terminal));
  },
});
