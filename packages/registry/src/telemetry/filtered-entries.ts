import type { Meter } from '@opentelemetry/api';
import type { Authority } from '../access/authority.ts';
import type { Exchange, RequestObserver } from '../api/observe-requests.ts';
import { type RegistryView, type Snapshot, winner } from '../engine/snapshot.ts';
import type { EntryKind } from '../store/rows.ts';

/** What is listed, by the audit name of the endpoint. */
const LISTS: Readonly<Record<string, EntryKind>> = {
  'server.list': 'server',
  'skill.list': 'skill',
  'plugin.list': 'plugin',
};

/** Counts the entries that lists leave out because their claims hide them from the caller (specification §6.2). */
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

function listedBy({ row, request, status }: Exchange): (Listed & { authority: Authority }) | undefined {
  const kind = typeof row?.audit === 'string' ? LISTS[row.audit] : undefined;
  const { authority, params } = request;
  if (kind === undefined || authority === undefined || (status !== 200 && status !== 304)) return undefined;
  const registry: unknown =
    typeof params === 'object' && params !== null ? Reflect.get(params, 'registry') : undefined;
  return typeof registry === 'string' ? { authority, registry, kind } : undefined;
}

/** Callers who see the same share a count; beyond so many the counts are made again. */
const MOST_COUNTS = 1000;

/** How many entries of a registry a caller does not see, counted once for each state of it and kind of caller. */
class HiddenEntries {
  readonly #counts = new WeakMap<RegistryView, Map<string, number>>();

  of(snapshot: Snapshot, authority: Authority, { registry, kind }: Listed): number {
    const view = snapshot.registries.get(registry);
    // Whoever is not checked sees everything.
    if (view === undefined || authority.kind !== 'full') return 0;
    const { visible, fingerprint } = snapshot.visibility(authority);
    const known = this.#counts.get(view) ?? new Map<string, number>();
    const key = `${kind} ${fingerprint}`;
    const hidden =
      known.get(key) ?? view.groups[kind].filter((group) => winner(group, visible) === undefined).length;
    if (known.size >= MOST_COUNTS) known.clear();
    this.#counts.set(view, known.set(key, hidden));
    return hidden;
  }
}
