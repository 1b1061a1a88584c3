import type { Meter } from '@opentelemetry/api';
import type { RequestObserver } from '../api/http/observe-requests.ts';
import type { ClaimClass } from '../access/claim-set.ts';
import type { Visibility } from '../access/visibility.ts';
import { type KeyGroup, type Snapshot, winner } from '../engine/snapshot.ts';
import type { SortedList } from '../engine/sorted-list.ts';
import type { EntryKind } from '../store/rows.ts';

/** What is listed, by the audit name of the endpoint. */
const LISTS: Readonly<Record<string, EntryKind>> = {
  'server.list': 'server',
  'skill.list': 'skill',
  'plugin.list': 'plugin',
};

/** Counts the entries that lists leave out because their claims hide them from the caller. */
export function countFiltered(meter: Meter, snapshot: () => Snapshot): RequestObserver {
  const filtered = meter.createCounter('skep.registry.entries.filtered', {
    description: 'Entries that lists left out because of their claims, summed over requests',
  });
  /** Entries are looked at once for each state of a registry. */
  const tallies = new WeakMap<SortedList<KeyGroup>, Tally>();
  return {
    end: ({ request: { row, authority, params }, status }) => {
      const kind = typeof row?.audit === 'string' ? LISTS[row.audit] : undefined;
      const { registry } = params;
      if (kind === undefined || typeof registry !== 'string') return;
      if (status !== 200 && status !== 304) return;
      // Whoever is not checked sees everything.
      if (authority?.kind !== 'full') return;
      const { registries, visibility } = snapshot();
      const groups = registries.get(registry)?.groups[kind].all;
      if (groups === undefined) return;
      const tally = tallies.get(groups) ?? tallyOf(groups);
      tallies.set(groups, tally);
      const hidden = countHidden(tally, visibility(authority));
      if (hidden > 0) filtered.add(hidden, { registry, kind });
    },
  };
}

/** The entries of one kind in a registry, by what decides who sees them. */
interface Tally {
  /** How many names have one copy only, by its claim class. */
  readonly single: ReadonlyMap<ClaimClass, number>;
  readonly several: readonly KeyGroup[];
}

function countHidden({ single, several }: Tally, { visible }: Visibility): number {
  let hidden = several.filter((group) => winner(group, visible) === undefined).length;
  for (const [claimClass, count] of single) if (!visible(claimClass)) hidden += count;
  return hidden;
}

function tallyOf(groups: SortedList<KeyGroup>): Tally {
  const single = new Map<ClaimClass, number>();
  for (const { candidates } of groups) {
    if (candidates.length > 1) continue;
    const [{ claimClass }] = candidates;
    single.set(claimClass, (single.get(claimClass) ?? 0) + 1);
  }
  return { single, several: [...groups].filter(({ candidates }) => candidates.length > 1) };
}
