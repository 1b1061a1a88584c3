import { setImmediate } from 'node:timers/promises';
import { decodeEntry } from '@skep/core/catalog/entry.ts';
import type { Skipped } from '@skep/core/catalog/registry-file.ts';
import { limitedField } from '@skep/core/audit/audit-event.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { compactText } from '@skep/core/json/scan.ts';
import type { Limits } from '../shape/limits.ts';
import type { WatchedServer, WatchedState } from '../sources/watched-source.ts';
import type { NewEntry } from '../store/rows.ts';
import { keptVersion, sizeFault, type IngestReport } from './ingest.ts';

/** What of a server is stored, or why it is left out. */
type Read = { readonly entry: NewEntry } | { readonly fault: string };

interface WatchedContent {
  readonly entries: readonly NewEntry[];
  readonly report: IngestReport;
}

export type WatchedReader = (state: WatchedState) => Promise<WatchedContent>;

const SHOWN = 50;
/** A few milliseconds of work; requests have turns in between. */
const READ_AT_ONCE = 200;

/** Reads what a watched source says into what is stored; what says the same as before is not read again. */
export function watchedReader(limits: () => Limits): WatchedReader {
  const known = new WeakMap<WatchedServer, Read>();
  return async ({ servers, kept, skipped, warnings }) => {
    let fresh = 0;
    const entries: NewEntry[] = [...kept];
    const left: Skipped[] = [...skipped];
    for (const server of servers) {
      let read = known.get(server);
      if (read === undefined) {
        known.set(server, (read = readServer(server, limits())));
        fresh += 1;
        if (fresh % READ_AT_ONCE === 0) await setImmediate();
      }
      if ('entry' in read) entries.push(read.entry);
      else left.push({ name: server.name, reason: read.fault });
    }
    const counts = { server: entries.length, skill: 0, plugin: 0 };
    const shown = left
      .slice(0, SHOWN)
      .map(({ name, reason }) => ({ name: limitedField(name), reason: limitedField(reason) }));
    return {
      entries,
      report: {
        format: 'server-array',
        entries: counts,
        versions: counts,
        skipped: shown,
        skippedTotal: left.length,
        replaced: 0,
        warnings: warnings.slice(0, SHOWN).map((one) => limitedField(one)),
        filtered: 0,
      },
    };
  };
}

function readServer({ json, claims }: WatchedServer, limits: Limits): Read {
  const decoded = decodeEntry({ kind: 'server', value: parseJson(json), ...compactText(json) });
  if ('fault' in decoded) return decoded;
  const large = sizeFault(decoded.entry, limits);
  if (large !== undefined) return { fault: large };
  const { content, ...identity } = keptVersion(decoded.entry);
  return { entry: { ...identity, claims, versions: [content] } };
}
