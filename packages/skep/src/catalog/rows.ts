import type { ServerEntry } from '@skep/core/catalog/entry.ts';
import { extensionSummary } from '@skep/core/catalog/extension-summary.ts';
import { toTable, displayWidth } from '../print/table.ts';

const HEAD = ['NAME', 'TYPE', 'TRANSPORT', 'TIER', 'DESCRIPTION'];
const MIN_DESCRIPTION = 24;

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

/** Servers as a table no wider than the terminal, as far as names allow. */
export function toCatalogTable(entries: readonly ServerEntry[], width: number): string {
  const rows = entries.map((entry) => [
    entry.name,
    kindsOf(entry).join(','),
    transportOf(entry),
    extensionSummary(entry.document).tier ?? '',
    entry.document.description,
  ]);
  const others = [0, 1, 2, 3].map(
    (column) => [HEAD, ...rows].reduce((most, row) => Math.max(most, displayWidth(row[column] ?? '')), 0) + 3,
  );
  const room = Math.max(MIN_DESCRIPTION, width - others.reduce((sum, one) => sum + one, 0));
  return toTable(
    HEAD,
    rows.map((row) => [...row.slice(0, 4), shorten(row[4] ?? '', room)]),
  );
}

/** As much of a text as stands in `room` columns. */
function shorten(text: string, room: number): string {
  if (displayWidth(text) <= room) return text;
  let kept = '';
  let width = 1;
  for (const character of text) {
    width += displayWidth(character);
    if (width > room) break;
    kept += character;
  }
  return `${kept.trimEnd()}…`;
}
