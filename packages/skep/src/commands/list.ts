import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { toTable } from '../print/table.ts';
import { toJsonText, toListItem, toMcpServers } from '../workloads/to-json.ts';
import { viewWorkloads, type WorkloadView } from '../workloads/view.ts';

const HEAD = ['NAME', 'PACKAGE', 'STATUS', 'URL', 'PORT', 'GROUP', 'CREATED'];

export const list = defineCommand({
  usage: 'skep list [flags]',
  summary: 'List running servers',
  examples: [
    { command: 'skep list --all', what: 'Also stopped and failed ones' },
    { command: 'skep list --format mcpservers', what: 'For the configuration of an MCP client' },
  ],
  settings: [
    ...settingsOf({ group: 'Selection' }, [
      flag('bool', 'all', 'Show servers in every state', { short: 'a', default: false }),
      flag('pairs', 'label', 'Only servers with this label; repeatable', {
        short: 'l',
        placeholder: 'key=value',
      }),
      flag('string', 'group', 'Only servers of this group'),
    ]),
    ...settingsOf({ group: 'Output' }, [
      flag('choice', 'format', 'How to print; mcpservers is what MCP clients read', {
        choices: ['text', 'json', 'mcpservers'],
        default: 'text',
      }),
    ]),
    ...commonSettings,
  ],
  async run({ values }, context) {
    await ensureHosted(context);
    const wanted = Object.entries(values.label ?? {});
    const matching = (await viewWorkloads(context)).filter(
      (view) =>
        (values.group === undefined || view.group === values.group) &&
        wanted.every(([key, value]) => view.labels[key] === value),
    );
    const views = matching.filter((view) => values.all || view.status === 'running');
    const { terminal } = context;
    if (values.format === 'json') return terminal.out(toJsonText(views.map(toListItem)));
    if (values.format === 'mcpservers') return terminal.out(toJsonText(toMcpServers(views)));
    // A server that fails or restarts should not just vanish from sight.
    const troubled = matching.filter((view) => !views.includes(view) && view.status !== 'stopped');
    if (troubled.length > 0)
      terminal.err(`Not running: ${troubled.map(trouble).join(', ')}; see skep list --all\n`);
    if (views.length > 0) return terminal.out(toTable(HEAD, views.map(toRow)));
    const where = values.group === undefined ? '' : ` in group '${values.group}'`;
    terminal.out(`No MCP servers found${where}\n`);
  },
});

const trouble = ({ name, status }: WorkloadView): string => `${name} (${status})`;

function toRow(view: WorkloadView): string[] {
  const created = view.createdAt?.toISOString().replace('T', ' ').slice(0, 19) ?? '';
  return [view.name, view.package, view.status, view.url, String(view.port), view.group, created];
}
