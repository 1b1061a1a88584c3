import { snapshotVisibility } from '../access/visibility.ts';
import type { EntryKind } from '../store/rows.ts';
import type { SourceBlock } from './block.ts';
import { compareBytes, lowerBound, withChanges } from './byte-order.ts';
import type { ChangedKeys } from './changed-keys.ts';
import type { ClaimClasses } from './claim-classes.ts';
import { KeptPages } from './kept-pages.ts';
import {
  type Candidate,
  type KeyGroup,
  type RegistryDefinition,
  type RegistryView,
  type Snapshot,
} from './snapshot.ts';

export interface SnapshotPatch {
  /** The same as before. */
  readonly definitions: readonly RegistryDefinition[];
  /** As they are now; the same sources as before. */
  readonly blocks: ReadonlyMap<string, SourceBlock>;
  /** What changed in which source. */
  readonly changed: ReadonlyMap<string, ChangedKeys>;
  /** Those of the snapshot before; kept in step. */
  readonly classes: ClaimClasses;
}

/**
 * What building the snapshot anew gives, at the cost of what changed: a publish looks at its own key in each registry that
 * shows it. Undefined when a claim set went out of use, because its number must not stay; then build anew.
 */
export function patchSnapshot(before: Snapshot, patch: SnapshotPatch): Snapshot | undefined {
  const registries = new Map(before.registries);
  for (const { name, sources } of patch.definitions) {
    const view = before.registries.get(name);
    const changed = sources.flatMap((source) => patch.changed.get(source) ?? []);
    if (view === undefined || changed.length === 0) continue;
    const linked = sources.flatMap((source) => patch.blocks.get(source) ?? []);
    registries.set(name, patchedView(view, { linked, changed, classes: patch.classes }));
  }
  const { classes } = patch;
  if (classes.hasUnused) return undefined;
  // Who sees which claim sets is decided already, unless there are new ones.
  if (classes.size === before.claimSets.length) return { ...before, registries, pages: new KeptPages() };
  const claimSets = classes.all();
  return { registries, claimSets, visibility: snapshotVisibility(claimSets), pages: new KeptPages() };
}

interface ViewPatch {
  /** By priority. */
  readonly linked: readonly SourceBlock[];
  readonly changed: readonly ChangedKeys[];
  readonly classes: ClaimClasses;
}

function patchedView(view: RegistryView, { linked, changed, classes }: ViewPatch): RegistryView {
  const patched = (kind: EntryKind): readonly KeyGroup[] => {
    const groups = view.groups[kind];
    const changes = new Map<string, KeyGroup | undefined>();
    for (const key of new Set(changed.flatMap((keys) => [...keys[kind]]))) {
      const after = candidatesOf(key, kind, { linked, classes });
      for (const { claimClass } of itemOf(groups, key)?.candidates ?? []) classes.release(claimClass);
      changes.set(key, after);
    }
    return withChanges(groups, changes);
  };
  const groups = { server: patched('server'), skill: patched('skill'), plugin: patched('plugin') };
  return { ...view, groups };
}

function candidatesOf(
  key: string,
  kind: EntryKind,
  { linked, classes }: Pick<ViewPatch, 'linked' | 'classes'>,
): KeyGroup | undefined {
  const [first, ...others] = linked.flatMap((block): Candidate[] => {
    const entry = itemOf(block.entries[kind], key);
    return entry === undefined ? [] : [{ entry, claimClass: classes.use(entry.claims) }];
  });
  return first === undefined ? undefined : { key, candidates: [first, ...others] };
}

/** The item of exactly this key in an ascending list. */
function itemOf<T extends { readonly key: string }>(items: readonly T[], key: string): T | undefined {
  const item = items[lowerBound(items, (other) => compareBytes(other.key, key) < 0)];
  return item?.key === key ? item : undefined;
}
