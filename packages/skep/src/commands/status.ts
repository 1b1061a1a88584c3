import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { toFacts } from '../print/table.ts';
import { toJsonText, toStatusItem, uptimeOf } from '../workloads/to-json.ts';
import { viewWorkload } from '../workloads/view.ts';

export const status = defineCommand({
  usage: 'skep status [flags] NAME',
  summary: 'Show one server',
  positionals: [{ name: 'NAME', required: true }],
  settings: [...formatSettings, ...commonSettings],
  async run({ values, positionals: [name = ''] }, context) {
    await ensureHosted(context);
    const view = await viewWorkload(name, context);
    const now = new Date(context.clock.now());
    if (values.format === 'json') return context.terminal.out(toJsonText(toStatusItem(view, now)));
    context.terminal.out(
      toFacts([
        ['Name', view.name],
        ['Status', view.status],
        ['Health', view.context],
        ['Package', view.package],
        ['URL', view.url],
        ['Port', String(view.port)],
        ['Transport', view.transport],
        ['Proxy Mode', view.proxyMode],
        ['Not Enforced', view.notEnforced?.join('; ')],
        ['Group', view.group],
        ['Created', view.createdAt?.toISOString().replace('T', ' ').slice(0, 19)],
        ['Uptime', uptimeOf(view, now)],
      ]),
    );
  },
});
