import { snapshotVisibility } from '../access/visibility.ts';
import type { EntryKind } from '../store/rows.ts';
import type { SourceBlock } from './block.ts';
import type { ChangedKeys } from './patch-block.ts';
import type { ClaimClasses } from './claim-classes.ts';
import type { ClaimClass } from '../access/claim-set.ts';
import type { Candidate, KeyGroup, GroupIndex } from './visible-groups.ts';
import { classesOf, type RegistryDefinition, type RegistryView, type Snapshot } from './snapshot.ts';
import { SortedList } from './sorted-list.ts';

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
  const touched = new Map<string, Set<ClaimClass>>();
  for (const { name, sources } of patch.definitions) {
    const view = before.registries.get(name);
    const changed = sources.flatMap((source) => patch.changed.get(source) ?? []);
    if (view === undefined || changed.length === 0) continue;
    const linked = sources.flatMap((source) => patch.blocks.get(source) ?? []);
    const seen = new Set<ClaimClass>();
    registries.set(name, patchedView(view, { linked, changed, classes: patch.classes, touched: seen }));
    touched.set(name, seen);
  }
  const { classes } = patch;
  if (classes.hasUnused) return undefined;
  const pages = before.pages.after(touched);
  // Who sees which claim sets is decided already, unless there are new ones.
  if (classes.size === before.claimSets.length) return { ...before, registries, pages };
  const claimSets = classes.all();
  return { registries, claimSets, visibility: snapshotVisibility(claimSets), pages };
}

interface ViewPatch {
  /** By priority. */
  readonly linked: readonly SourceBlock[];
  readonly changed: readonly ChangedKeys[];
  readonly classes: ClaimClasses;
  /** Takes the classes of all copies that are or were under a changed key. */
  readonly touched: Set<ClaimClass>;
}

/** What is under a key now; undefined when nothing is. */
type GroupChanges = Map<string, KeyGroup | undefined>;

function patchedView(view: RegistryView, { linked, changed, classes, touched }: ViewPatch): RegistryView {
  const patched = (kind: EntryKind): GroupIndex => {
    const index = view.groups[kind];
    const changes: GroupChanges = new Map();
    const byClass = new Map<ClaimClass, GroupChanges>();
    for (const key of new Set(changed.flatMap((keys) => [...keys[kind]]))) {
      const after = candidatesOf(key, kind, { linked, classes });
      const before = index.all.find(key);
      for (const { claimClass } of before?.candidates ?? []) classes.release(claimClass);
      changes.set(key, after);
      const now = classesOf(after);
      for (const claimClass of new Set([...classesOf(before), ...now])) {
        touched.add(claimClass);
        const list: GroupChanges = byClass.get(claimClass) ?? new Map();
        byClass.set(claimClass, list.set(key, now.has(claimClass) ? after : undefined));
      }
    }
    return { all: index.all.with(changes), byClass: patchedClasses(index, byClass) };
  };
  const groups = { server: patched('server'), skill: patched('skill'), plugin: patched('plugin') };
  return { ...view, groups };
}

function patchedClasses(
  { byClass }: GroupIndex,
  changes: ReadonlyMap<ClaimClass, GroupChanges>,
): GroupIndex['byClass'] {
  if (changes.size === 0) return byClass;
  const patched = new Map(byClass);
  for (const [claimClass, change] of changes) {
    const list = (byClass.get(claimClass) ?? SortedList.of<KeyGroup>([])).with(change);
    if (list.length === 0) patched.delete(claimClass);
    else patched.set(claimClass, list);
  }
  return patched;
}

function candidatesOf(
  key: string,
  kind: EntryKind,
  { linked, classes }: Pick<ViewPatch, 'linked' | 'classes'>,
): KeyGroup | undefined {
  const [first, ...others] = linked.flatMap((block): Candidate[] => {
    const entry = block.entries[kind].find(key);
    return entry === undefined ? [] : [{ entry, claimClass: classes.use(entry.claims) }];
  });
  return first === undefined ? undefined : { key, candidates: [first, ...others] };
}
