import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { extensionSummary } from '@skep/core/catalog/extension-summary.ts';
import type { Format } from '@skep/core/terminal/paint.ts';
import { toTable, type Column, type Screen } from '../print/table.ts';
import { valuesNeeded, type Outlook } from './outlook.ts';

/** On a narrow terminal a description is cut, and the rest stays as long as it can. */
const DESCRIPTION: Column = { title: 'DESCRIPTION', least: 16 };
const LISTED: readonly Column[] = [
  { title: 'NAME', whole: true },
  { title: 'TYPE' },
  { title: 'TRANSPORT', optional: 2 },
  { title: 'TIER', optional: 1 },
  DESCRIPTION,
];
const FOUND: readonly Column[] = [
  { title: 'NAME', whole: true },
  { title: 'RUNS HERE', format: formatOfAnswer },
  { title: 'NEEDS', optional: 1 },
  DESCRIPTION,
];

/** What kinds of thing an entry can be run from: `oci`, `npm`, `pypi`, `remote`. */
export function kindsOf({ document }: ServerEntry): readonly string[] {
  const packages = (document.packages ?? []).map((one) => one.registryType);
  return [...new Set([...packages, ...((document.remotes?.length ?? 0) > 0 ? ['remote'] : [])])];
}

function transportOf({ document }: ServerEntry): string {
  return document.packages?.[0]?.transport?.type ?? document.remotes?.[0]?.type ?? '';
}

/** One element of `--format json`. */
export function toCatalogItem(entry: ServerEntry): Record<string, unknown> {
  const { document } = entry;
  const { tags, tools, tier, status } = extensionSummary(document);
  return {
    name: entry.name,
    version: entry.version,
    ...(document.title ? { title: document.title } : {}),
    description: document.description,
    types: kindsOf(entry),
    transport: transportOf(entry),
    ...(tier === undefined ? {} : { tier }),
    ...(status === undefined ? {} : { status }),
    tags,
    tools,
  };
}

/** Servers as a table. */
export function toCatalogTable(entries: readonly ServerEntry[], screen: Screen): string {
  const rows = entries.map((entry) => [
    entry.name,
    kindsOf(entry).join(','),
    transportOf(entry),
    extensionSummary(entry.document).tier ?? '',
    entry.document.description,
  ]);
  return toTable(LISTED, rows, screen);
}

/** A server that was found, and what running it here takes. */
export interface Hit {
  readonly entry: ServerEntry;
  readonly outlook: Outlook;
}

/** What was found as a table. */
export function toHitTable(hits: readonly Hit[], screen: Screen): string {
  const rows = hits.map(({ entry, outlook }) => [
    entry.name,
    outlook.here,
    needsText(outlook),
    entry.document.description,
  ]);
  return toTable(FOUND, rows, screen);
}

/** One element of what `search --format json` prints. */
export function toHitItem({ entry, outlook }: Hit): Record<string, unknown> {
  const needs = valuesNeeded(outlook.plan).map(({ name, secret }) => ({ name, secret }));
  return { ...toCatalogItem(entry), runsHere: outlook.here, needs };
}

function needsText({ plan }: Outlook): string {
  const needed = valuesNeeded(plan);
  const secrets = needed.filter(({ secret }) => secret).length;
  const values = needed.length - secrets;
  const parts = [
    ...(secrets > 0 ? [secrets === 1 ? 'a secret' : `${secrets} secrets`] : []),
    ...(values > 0 ? [values === 1 ? 'a value' : `${values} values`] : []),
  ];
  return parts.join(', ');
}

function formatOfAnswer(answer: string): Format | undefined {
  if (answer === 'yes') return 'green';
  return answer === 'no' ? 'dim' : 'yellow';
}
