import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { CLIENT_NAMES, CLIENTS } from '../clients/table.ts';
import { toTable, type Column } from '../print/table.ts';
import { toJsonText, toListItem, toMcpServers } from '../workloads/to-json.ts';
import { ageText, formatOfStatus, shortPackage, statusText, timeText } from '../workloads/to-text.ts';
import { filterOf } from '../workloads/select.ts';
import { shownUrl, viewWorkloads, type WorkloadView } from '../workloads/view.ts';

const STATUS: Column = { title: 'STATUS', whole: true, format: formatOfStatus };

/** What can be used, or will be by itself. */
const SHOWN: ReadonlySet<WorkloadView['status']> = new Set(['running', 'auth_retrying']);

/** Everything, for files and `--format wide`. */
const WIDE = ['NAME', 'PACKAGE', STATUS, 'URL', 'PORT', 'GROUP', 'CREATED'];

/** Of all tools of a server, since its proxy started; who prints into a file without asking for them does not wait for them. */
const COUNTS = ['CALLS', 'ERRORS', 'TIME'];

/** What a person looks for, on a terminal. The end of a name or package is what tells it from others. */
const NARROW: readonly Column[] = [
  { title: 'NAME', keepsEnd: true },
  { title: 'PACKAGE', least: 20, keepsEnd: true, optional: 1 },
  STATUS,
  { title: 'URL', whole: true },
  { title: 'AGE', optional: 2 },
];

const UPGRADE: Column = { title: 'UPGRADE', least: 10 };

/** What clients read has no place for more. */
const CLIENT_FORMATS: readonly string[] = ['mcpservers', ...CLIENT_NAMES];

export const list = defineCommand({
  usage: 'skep list [flags]',
  summary: 'List running servers',
  examples: [
    { command: 'skep list --all', what: 'Also stopped and failed ones' },
    { command: 'skep list -o wide', what: 'Also port, group and time, with nothing cut' },
    { command: 'skep list --format cursor', what: 'What to write into the file of an MCP client by hand' },
  ],
  settings: [
    ...settingsOf({ group: 'Selection' }, [
      flag('bool', 'all', 'Show servers in every state', { short: 'a', default: false }),
      flag('list', 'label', 'Only servers with this label; repeatable, all of them must match', {
        short: 'l',
        placeholder: 'key=value',
        offers: 'label',
      }),
      flag('string', 'group', 'Only servers of this group', {
        short: 'g',
        placeholder: 'group',
        offers: 'group',
      }),
    ]),
    ...settingsOf({ group: 'Output' }, [
      flag('bool', 'check-upgrades', 'Say which servers have a newer version', { default: false }),
      flag(
        'choice',
        'format',
        'How to print: text, wide, json, mcpservers, or an MCP client, as its file has it',
        {
          short: 'o',
          choices: ['text', 'wide', 'json', 'mcpservers', ...CLIENT_NAMES],
          placeholder: 'format',
          default: 'text',
        },
      ),
    ]),
    ...commonSettings,
  ],
  async run({ values }, context) {
    const { matches } = filterOf(values);
    if (values.checkUpgrades && CLIENT_FORMATS.includes(values.format)) {
      throw new SkepError('usage/conflict', {
        message: `--check-upgrades does not go with --format ${values.format}`,
        hint: 'use it with --format text, wide or json',
      });
    }
    const statuses = await ensureHosted(context);
    const matching = (await viewWorkloads(context, statuses)).filter(matches);
    const views = matching.filter((view) => values.all || SHOWN.has(view.status));
    const { terminal } = context;
    const upgrades = values.checkUpgrades ? await upgradesOf(views, context) : undefined;
    if (values.format === 'json') {
      const upgrade = (name: string): object => (upgrades ? { upgrade: upgrades.get(name) ?? null } : {});
      const { counts, toCountItems } = await countsOf(views, context);
      const item = (view: WorkloadView): object => toListItem(view, toCountItems(counts.get(view.name)));
      return terminal.out(toJsonText(views.map((view) => ({ ...item(view), ...upgrade(view.name) }))));
    }
    if (values.format === 'mcpservers') return terminal.out(toJsonText(toMcpServers(views)));
    const client = CLIENTS.find(({ name }) => name === values.format);
    if (client)
      return terminal.out(await (await import('../workloads/to-client.ts')).toClientText(client, views));
    // A server that fails or restarts should not just vanish from sight.
    const troubled = matching.filter((view) => !views.includes(view) && view.status !== 'stopped');
    if (troubled.length > 0)
      terminal.err(`Not running: ${troubled.map(trouble).join(', ')}; see skep list --all\n`);
    if (views.length > 0)
      return terminal.out(
        values.format === 'wide'
          ? await wideTable(views, upgrades, context)
          : tableOf(views, { upgrades }, context),
      );
    const where = values.group === undefined ? '' : printable(` in group '${values.group}'`);
    terminal.out(`No MCP servers found${where}\n`);
  },
});

const trouble = ({ name, status }: WorkloadView): string => `${name} (${status})`;

/** Files get everything, as `wide` shows it. */
function tableOf(
  views: readonly WorkloadView[],
  { upgrades }: { readonly upgrades: Upgrades | undefined },
  { terminal, clock }: Pick<Context, 'terminal' | 'clock'>,
): string {
  const head = upgrades ? [UPGRADE] : [];
  const upgrade = ({ name }: WorkloadView): string[] => (upgrades ? [upgrades.get(name) ?? '-'] : []);
  if (!terminal.liveOut) {
    const rows = views.map((view) => [...wideCells(view), ...upgrade(view)]);
    return toTable([...WIDE, ...head], rows, { ...terminal, widthOut: Infinity });
  }
  const now = new Date(clock.now());
  const short = views.map((view) => ({ ...view, package: shortPackage(view.package) }));
  const rows = short.map((view) => [...shared(view), ageText(view.createdAt, now), ...upgrade(view)]);
  return toTable([...NARROW, ...head], rows, terminal);
}

const wideCells = (view: WorkloadView): string[] => [
  ...shared(view),
  `${view.port}`,
  view.group,
  timeText(view.createdAt),
];

/** Everything that is known, what was counted too. */
async function wideTable(
  views: readonly WorkloadView[],
  upgrades: Upgrades | undefined,
  context: Context,
): Promise<string> {
  const { counts, countCells } = await countsOf(views, context);
  const rows = views.map((view) => [
    ...wideCells(view),
    ...countCells(counts.get(view.name)),
    ...(upgrades ? [upgrades.get(view.name) ?? '-'] : []),
  ]);
  const head = [...WIDE, ...COUNTS, ...(upgrades ? [UPGRADE] : [])];
  return toTable(head, rows, { ...context.terminal, widthOut: Infinity });
}

/** Nothing of it is loaded by a list that shows no counts, and nobody is asked for none. */
async function countsOf(views: readonly WorkloadView[], context: Context) {
  const { readToolCounts, countCells, toCountItems } = await import('../cli/tool-counts.ts');
  const counts = new Map(Object.entries(views.length === 0 ? {} : await readToolCounts(context)));
  return { counts, countCells, toCountItems };
}

type Upgrades = ReadonlyMap<string, string>;

/** Nothing of it is loaded by a list that asks nobody. */
async function upgradesOf(views: readonly WorkloadView[], context: Context): Promise<Upgrades> {
  const { checkUpgrades } = await import('../run/check-upgrades.ts');
  return checkUpgrades(
    views.map(({ name }) => name),
    context,
  );
}

const shared = (view: WorkloadView): string[] => [
  view.name,
  view.package,
  statusText(view.status),
  shownUrl(view),
];
