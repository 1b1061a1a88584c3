import { SkepError } from '../errors/skep-error.ts';
import type { ServerEntry } from './entry.ts';
import { splitName } from './entry-name.ts';
import { compareVersions } from './version-order.ts';

/** A server as far as it is looked up: an entry, or a row of an index. */
type Named = Pick<ServerEntry, 'name' | 'version'>;

/** The newest version of every server name, in the order the names first appear. */
export function newestPerName<Row extends Named>(entries: Iterable<Row>): Row[] {
  const newest = new Map<string, Row>();
  for (const entry of entries) {
    const known = newest.get(entry.name);
    if (known === undefined || compareVersions(entry.version, known.version) > 0)
      newest.set(entry.name, entry);
  }
  return [...newest.values()];
}

/** Listed in an error at most; the rest is counted. */
const SHOWN = 5;

function ambiguous(query: string, names: readonly string[]): SkepError {
  const shown = names.slice(0, SHOWN).join(', ');
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : '';
  return new SkepError('catalog/ambiguous-name', {
    message: `more than one server matches "${query}": ${shown}${more}`,
    detail: { names },
  });
}

/**
 * The newest version of the server that `query` means: its exact name, else, for a query without "/", the only name
 * that ends in `/query` (docs/behaviour/run.md#catalogues). Undefined when there is none. Throws
 * `catalog/ambiguous-name` listing the candidates when several names end that way.
 */
export function findServer<Row extends Named>(entries: Iterable<Row>, query: string): Row | undefined {
  const servers = newestPerName(entries);
  const exact = servers.find((entry) => entry.name === query);
  if (exact !== undefined || query.includes('/')) return exact;
  const bySegment = servers.filter((entry) => splitName(entry.name).name === query);
  if (bySegment.length > 1) throw ambiguous(query, bySegment.map((entry) => entry.name).sort());
  return bySegment[0];
}
