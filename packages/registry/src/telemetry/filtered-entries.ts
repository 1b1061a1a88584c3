import type { Meter } from '@opentelemetry/api';
import type { Authority } from '../access/authority.ts';
import type { Exchange, RequestObserver } from '../api/http/observe-requests.ts';
import type { ClaimClass } from '../access/claim-set.ts';
import type { KeyGroup } from '../engine/snapshot.ts';
import { type Snapshot, winner } from '../engine/snapshot.ts';
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
  const counts = new HiddenEntries();
  return {
    end: (exchange) => {
      const listed = listedBy(exchange);
      if (listed === undefined) return;
      const { authority, registry, kind } = listed;
      const hidden = counts.of(snapshot(), authority, { registry, kind });
      if (hidden > 0) filtered.add(hidden, { registry, kind });
    },
  };
}

interface Listed {
  readonly registry: string;
  readonly kind: EntryKind;
}

function listedBy({ request, status }: Exchange): (Listed & { authority: Authority }) | undefined {
  const { row, authority, params } = request;
  const kind = typeof row?.audit === 'string' ? LISTS[row.audit] : undefined;
  if (kind === undefined || authority === undefined || (status !== 200 && status !== 304)) return undefined;
  const registry: unknown =
    typeof params === 'object' && params !== null ? Reflect.get(params, 'registry') : undefined;
  return typeof registry === 'string' ? { authority, registry, kind } : undefined;
}

/** The entries of one kind in a registry, by what decides who sees them. */
interface Tally {
  /** How many names have one copy only, by its claim class. */
  readonly single: ReadonlyMap<ClaimClass, number>;
  readonly several: readonly KeyGroup[];
}

/** How many entries of a registry a caller does not see. Entries are looked at once for each state of the registry. */
class HiddenEntries {
  readonly #tallies = new WeakMap<SortedList<KeyGroup>, Tally>();

  of(snapshot: Snapshot, authority: Authority, { registry, kind }: Listed): number {
    const groups = snapshot.registries.get(registry)?.groups[kind].all;
    // Whoever is not checked sees everything.
    if (groups === undefined || authority.kind !== 'full') return 0;
    const tally = this.#tallies.get(groups) ?? tallyOf(groups);
    this.#tallies.set(groups, tally);
    const { visible } = snapshot.visibility(authority);
    let hidden = tally.several.filter((group) => winner(group, visible) === undefined).length;
    for (const [claimClass, count] of tally.single) if (!visible(claimClass)) hidden += count;
    return hidden;
  }
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
