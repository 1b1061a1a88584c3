import { licenceOf, listedTools, type ListedTool } from '@skep/core/catalog/display-facts.ts';
import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { extensionSummary } from '@skep/core/catalog/extension-summary.ts';
import type { LocalPlan, RunPlan } from '@skep/core/catalog/run-plan.ts';
import { tokensText } from '@skep/core/catalog/tool-weight.ts';
import type { Requirement } from '@skep/core/catalog/run-plan/requirement.ts';
import { allowedTexts, type AllowedHosts } from '../permissions/allowed-hosts.ts';
import { chooseDataPaths } from '../permissions/data-paths.ts';
import type { Fact } from '../print/table.ts';
import { outlookOf, type Outlook } from './outlook.ts';
import type { Abilities } from '../runtime/glance.ts';

/** Publishers write what they like; a screen is enough of each. */
const MAX_VALUE = 1000;
const MAX_ROWS = 100;

/** Everything about a server that helps to decide, and the line that runs it: `called` is how it was asked for. */
export function serverFacts(entry: ServerEntry, abilities: Abilities, called: string): readonly Fact[] {
  const { document } = entry;
  const outlook = outlookOf(document, abilities);
  const { tier, status, tags } = extensionSummary(document);
  const facts: readonly Fact[] = [
    ['Name', entry.name],
    ['Title', document.title ?? undefined],
    ['Version', entry.version],
    ['Description', document.description],
    ['Status', [tier, status].filter((one) => one !== undefined).join(', ')],
    ['Tags', listed(tags)],
    ['Licence', licenceOf(document)],
    ['Repository', document.repository?.url ?? undefined],
    ['Website', document.websiteUrl ?? undefined],
    ...planFacts(outlook.plan),
    ['Tools', toolsText(listedTools(document))],
    ...outlookFacts(outlook, called),
  ];
  return facts.map(([name, value, format]) => [bounded(name), value && bounded(value), format]);
}

function planFacts(plan: RunPlan | undefined): readonly Fact[] {
  if (plan === undefined) return [];
  const spoken: Fact = ['Speaks', plan.transport];
  if (!isLocal(plan)) {
    return [
      ['Runs from', plan.target.url],
      spoken,
      ...plan.urlVariables.map((one) => requirementFact(`{${one.name}}`, one)),
      ...plan.headers.map((one) => requirementFact(`Header ${one.name}`, one)),
      ...plan.env.map((one) => requirementFact(`-e ${one.name}`, one)),
    ].slice(0, MAX_ROWS) as readonly Fact[];
  }
  return [
    ['Runs from', targetText(plan)],
    spoken,
    ['Arguments', plan.args.length === 0 ? undefined : plan.args.join(' ')],
    ...plan.missingArgs.slice(0, MAX_ROWS).map((one) => requirementFact(`Argument ${one.name}`, one)),
    ...plan.env.slice(0, MAX_ROWS).map((one) => requirementFact(`-e ${one.name}`, one)),
    ...permissionFacts(plan),
    ['Keeps', dataOf(plan)],
  ];
}

function isLocal(plan: RunPlan): plan is LocalPlan {
  return plan.target.kind !== 'remote';
}

function targetText({ target }: LocalPlan): string {
  if (target.kind === 'image') return `image ${target.reference}`;
  const version = target.version === undefined ? '' : `@${target.version}`;
  return `${target.ecosystem} package ${target.name}${version}`;
}

/** What the server may reach of the network and of this machine, when nothing else is said to `run`. */
function permissionFacts({ permissions }: LocalPlan): readonly Fact[] {
  if (permissions === undefined) return [];
  const { network, read, write, privileged } = permissions;
  const { insecure_allow_all: all, allow_host: hosts, allow_port: ports } = network?.outbound ?? {};
  const none = network?.outbound ? 'none' : undefined;
  return [
    ['Hosts', all === true ? 'any' : listed(hosts ?? []) || none],
    ['Ports', listed((ports ?? []).map((port) => `${port}`))],
    [
      'Isolated',
      network?.outbound
        ? isolatedText({ all: all === true, hosts: hosts ?? [], ports: ports ?? [] })
        : undefined,
    ],
    ['Reads', listed(read ?? [])],
    ['Writes', listed(write ?? [])],
    ['Privileged', privileged === true ? 'yes' : undefined, 'red'],
  ];
}

/** Hosts and ports have to agree, and only isolation keeps them. */
function isolatedText(allowed: AllowedHosts): string {
  return `with --isolate-network it reaches ${listed(allowedTexts(allowed)) || 'no host'}`;
}

/** Where the server finds again what it wrote, even after it was removed. */
function dataOf({ target, volumes }: LocalPlan): string | undefined {
  const paths = chooseDataPaths({ isPackage: target.kind === 'package', declared: volumes, mounts: [] });
  return paths && `what it writes to ${listed(paths)}`;
}

function requirementFact(name: string, { required, secret, description, ...one }: Requirement): Fact {
  const notes = [
    required ? 'required' : 'optional',
    ...(secret ? ['secret'] : []),
    ...(one.default === undefined || secret ? [] : [`default ${JSON.stringify(bounded(one.default))}`]),
    ...(one.choices === undefined ? [] : [`one of ${listed(one.choices)}`]),
  ];
  return [name, `${bounded(description ?? '')} (${notes.join(', ')})`.trim()];
}

function toolsText(tools: readonly ListedTool[]): string | undefined {
  if (tools.length === 0) return undefined;
  const total = tools.reduce((sum, { tokens = 0 }) => sum + tokens, 0);
  const names = tools.map(({ name, tokens }) => (tokens === undefined ? name : `${name} (${tokens})`));
  const weight = total === 0 ? '' : `, ${tokensText(total)}`;
  return `${tools.length}${weight}: ${listed(names)}`;
}

function outlookFacts({ here, why, plan }: Outlook, called: string): readonly Fact[] {
  if (plan === undefined) return [['Not runnable', why]];
  const runs: Fact = [
    'Runs here',
    why === undefined ? here : `${here}: ${why}`,
    here === 'yes' ? 'green' : 'yellow',
  ];
  if (here === 'no') return [runs];
  if (!isLocal(plan)) {
    // What is no word could mean anything to a shell.
    const needed = plan.headers.filter(
      (one) => one.required && one.default === undefined && /^[\w-]+$/.test(one.name),
    );
    const flags = needed.map(({ name }) => ` --remote-forward-headers-secret ${name}=SECRET`);
    return [runs, ['Run it', `skep run ${called}${flags.join('')}`, 'bold']];
  }
  const args = plan.missingArgs.slice(0, MAX_ROWS).map(({ name }) => placeholderOf(name));
  const rest = args.length === 0 ? '' : ` -- ${args.join(' ')}`;
  return [runs, ['Run it', `skep run ${called}${rest}`, 'bold']];
}

/** The name of a server is letters and digits; what an argument stands for may be anything, and is copied into a shell. */
function placeholderOf(name: string): string {
  const value =
    name
      .replaceAll(/[^A-Za-z0-9]+/g, '_')
      .replaceAll(/^_+|_+$/g, '')
      .toUpperCase() || 'VALUE';
  return /^--?[A-Za-z0-9][\w-]*$/.test(name) ? `${name} ${value}` : value;
}

/** As many as fit. */
function listed(values: readonly string[]): string {
  const shown = values.slice(0, MAX_ROWS).join(', ');
  return values.length > MAX_ROWS ? `${shown} and ${values.length - MAX_ROWS} more` : shown;
}

function bounded(text: string): string {
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}
