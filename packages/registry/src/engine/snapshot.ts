import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RawClaims } from '@skep/auth/claims/claims.ts';
import type { ServedEntry, SourceBlock, ChangedKeys } from './block.ts';
import { snapshotVisibility, type SnapshotVisibility, type Visibility } from '../access/visibility.ts';
import { decodeClaimSet, type ClaimClass, type ClaimSet, type VisibleClasses } from '../access/claim-set.ts';
import { KeptPages } from './kept-pages.ts';
import { perKind, type EntryKind, type PerKind } from '../store/rows.ts';
import { compareBytes } from '../store/reads/byte-order.ts';
import { mergedFrom, SortedList } from './sorted-list.ts';

/** A registry of the configuration: its sources in order of priority, highest first. */
export interface RegistryDefinition {
  readonly name: string;
  readonly sources: readonly string[];
  /** Who may enter. */
  readonly claims: ClaimSet;
}

export interface RegistryView {
  readonly name: string;
  /** In order of priority, highest first. */
  readonly sources: readonly string[];
  /** Claims that callers need to enter; undefined when they cannot be read, and then nobody enters. */
  readonly gate: RawClaims | undefined;
  readonly groups: PerKind<GroupIndex>;
}

/** The names of one kind in a registry: all of them, and by the claim class of any copy. Every list ascends by key. */
export interface GroupIndex {
  readonly all: SortedList<KeyGroup>;
  readonly byClass: ReadonlyMap<ClaimClass, SortedList<KeyGroup>>;
}

/** Everything a registry holds under one key, by source priority. Which candidate a caller sees is decided per read. */
export interface KeyGroup {
  readonly key: string;
  readonly candidates: readonly [Candidate, ...Candidate[]];
}

/** One source's entry under a key. */
interface Candidate {
  readonly claimClass: ClaimClass;
  readonly entry: ServedEntry;
}

/** What is served at one moment: immutable, so that a request reads the old state or the new one, never a mix. */
export interface Snapshot {
  readonly registries: ReadonlyMap<string, RegistryView>;
  /** Claim sets in class order. */
  readonly claimSets: readonly ClaimSet[];
  /** What a caller sees, remembered per caller for as long as the snapshot lives. */
  readonly visibility: SnapshotVisibility;
  readonly pages: KeptPages;
}

/** Joins sources into registries. A source without a block (not loaded yet) contributes nothing. */
export function buildSnapshot(
  definitions: readonly RegistryDefinition[],
  blocks: ReadonlyMap<string, SourceBlock>,
  classes = new ClaimClasses(),
): Snapshot {
  const registries = new Map<string, RegistryView>();
  for (const definition of definitions) {
    const linked = definition.sources.flatMap((source) => blocks.get(source) ?? []);
    registries.set(definition.name, {
      name: definition.name,
      sources: definition.sources,
      gate: decodeClaimSet(definition.claims),
      groups: perKind((kind) => groupByKey(kind, linked, classes)),
    });
  }
  return { registries, ...decidedOn(classes.all()), pages: new KeptPages() };
}

function decidedOn(claimSets: readonly ClaimSet[]): Pick<Snapshot, 'claimSets' | 'visibility'> {
  return { claimSets, visibility: snapshotVisibility(claimSets) };
}

function groupByKey(kind: EntryKind, blocks: readonly SourceBlock[], classes: ClaimClasses): GroupIndex {
  const groups = new Map<string, KeyGroup>();
  for (const block of blocks) {
    for (const entry of block.entries[kind]) {
      const candidate = { entry, claimClass: classes.use(entry.claims) };
      const before = groups.get(entry.key);
      groups.set(entry.key, {
        key: entry.key,
        candidates: before === undefined ? [candidate] : [...before.candidates, candidate],
      });
    }
  }
  return indexOf([...groups.values()].toSorted((a, b) => compareBytes(a.key, b.key)));
}

function indexOf(all: readonly KeyGroup[]): GroupIndex {
  const byClass = new Map<ClaimClass, KeyGroup[]>();
  for (const group of all) {
    for (const claimClass of classesOf(group)) {
      const list = byClass.get(claimClass);
      if (list === undefined) byClass.set(claimClass, [group]);
      else list.push(group);
    }
  }
  const lists = [...byClass].map(([claimClass, list]) => [claimClass, SortedList.of(list)] as const);
  return { all: SortedList.of(all), byClass: new Map(lists) };
}

/** The claim classes of all copies. */
export function classesOf(group: KeyGroup | undefined): ReadonlySet<ClaimClass> {
  return new Set(group?.candidates.map(({ claimClass }) => claimClass));
}

/**
 * The copy of an entry that a caller sees: all versions come from the highest-priority source whose entry is visible to
 * them. A copy that is hidden from the caller hides nothing (docs/behaviour/registry.md#shadowing).
 */
export function winner(group: KeyGroup, visible: Visibility['visible']): ServedEntry | undefined {
  // No closure: a page looks at hundreds of groups.
  for (const { claimClass, entry } of group.candidates) if (visible(claimClass)) return entry;
  return undefined;
}

/**
 * The names that have a copy of a visible class, ascending from `from` on (all of them where it is
 * undefined); gives the next one each time. Names of which the caller sees no copy are not even passed over,
 * so the time that a list takes tells nothing about them.
 */
export function visibleGroups(
  { all, byClass }: GroupIndex,
  classes: VisibleClasses,
  from: string | undefined,
): () => KeyGroup | undefined {
  const lists = classes === 'all' ? [all] : classes.flatMap((each) => byClass.get(each) ?? []);
  return mergedFrom(lists, from);
}

/**
 * Gives every distinct claim set a small number, and counts its uses. Snapshots that follow one another share it as long
 * as every set is in use; then the next one starts anew, so it cannot grow.
 */
export class ClaimClasses {
  readonly #classes = new Map<ClaimSet, ClaimClass>();
  readonly #uses: number[] = [];

  /** The number of a claim set that one more candidate has. */
  use(claims: ClaimSet): ClaimClass {
    const claimClass = this.#classes.get(claims) ?? this.#uses.length;
    this.#classes.set(claims, claimClass);
    this.count(claimClass, 1);
    return claimClass;
  }

  /** Its number, if it has one. */
  find(claims: ClaimSet): ClaimClass | undefined {
    return this.#classes.get(claims);
  }

  /** So many candidates more have it, or fewer. */
  count(claimClass: ClaimClass, more: number): void {
    this.#uses[claimClass] = this.usesOf(claimClass) + more;
  }

  usesOf(claimClass: ClaimClass): number {
    return this.#uses[claimClass] ?? 0;
  }

  get size(): number {
    return this.#uses.length;
  }

  /** Claim sets in class order, for deciding once per caller which classes are visible. */
  all(): ClaimSet[] {
    return [...this.#classes.keys()];
  }
}

/** What a patch changes of the classes. None of it counts, and no number is taken, until it is applied. */
class ClassChanges {
  readonly #classes: ClaimClasses;
  readonly #size: number;
  readonly #added = new Map<ClaimSet, ClaimClass>();
  readonly #more = new Map<ClaimClass, number>();

  constructor(classes: ClaimClasses) {
    this.#classes = classes;
    this.#size = classes.size;
  }

  /** Sets that had no number, in the order of those they get. */
  get added(): readonly ClaimSet[] {
    return [...this.#added.keys()];
  }

  use(claims: ClaimSet): ClaimClass {
    const claimClass = this.#classes.find(claims) ?? this.#add(claims);
    this.#count(claimClass, 1);
    return claimClass;
  }

  release(claimClass: ClaimClass): void {
    this.#count(claimClass, -1);
  }

  /** Whether no candidate is left of some set. */
  leaveUnused(): boolean {
    return this.#more.entries().some(([claimClass, more]) => this.#classes.usesOf(claimClass) + more === 0);
  }

  /** Fails, with nothing changed, where the classes are not those that it was made for. */
  apply(): void {
    // A number that somebody else has by now would show to callers what they may not see.
    if (this.#classes.size !== this.#size) throw new SkepError('internal/bug', { message: 'other classes' });
    for (const claims of this.#added.keys()) this.#count(this.#classes.use(claims), -1);
    for (const [claimClass, more] of this.#more) this.#classes.count(claimClass, more);
  }

  #add(claims: ClaimSet): ClaimClass {
    const claimClass = this.#added.get(claims) ?? this.#size + this.#added.size;
    this.#added.set(claims, claimClass);
    return claimClass;
  }

  #count(claimClass: ClaimClass, more: number): void {
    this.#more.set(claimClass, (this.#more.get(claimClass) ?? 0) + more);
  }
}

interface SnapshotPatch {
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
 * shows it. Undefined when a claim set would go out of use, because its number must not stay; then build anew. Nothing has
 * changed until the result is called, which gives the snapshot and must follow the one before.
 */
export function patchSnapshot(before: Snapshot, patch: SnapshotPatch): (() => Snapshot) | undefined {
  const registries = new Map(before.registries);
  const touched = new Map<string, Set<ClaimClass>>();
  const classes = new ClassChanges(patch.classes);
  for (const { name, sources } of patch.definitions) {
    const view = before.registries.get(name);
    const changed = sources.flatMap((source) => patch.changed.get(source) ?? []);
    if (view === undefined || changed.length === 0) continue;
    const linked = sources.flatMap((source) => patch.blocks.get(source) ?? []);
    const seen = new Set<ClaimClass>();
    registries.set(name, patchedView(view, { linked, changed, classes, touched: seen }));
    touched.set(name, seen);
  }
  if (classes.leaveUnused()) return undefined;
  const { added } = classes;
  // Who sees which claim sets is decided already, unless there are new ones.
  const decided = added.length === 0 ? before : decidedOn([...before.claimSets, ...added]);
  return () => {
    classes.apply();
    return { ...before, ...decided, registries, pages: before.pages.after(touched) };
  };
}

interface ViewPatch {
  /** By priority. */
  readonly linked: readonly SourceBlock[];
  readonly changed: readonly ChangedKeys[];
  readonly classes: ClassChanges;
  /** Takes the classes of all copies that are or were under a changed key. */
  readonly touched: Set<ClaimClass>;
}

/** What is under a key now; undefined when nothing is. */
type GroupChanges = Map<string, KeyGroup | undefined>;

function patchedView(view: RegistryView, patch: ViewPatch): RegistryView {
  const { changed, classes, touched } = patch;
  const groups = perKind((kind) => {
    const index = view.groups[kind];
    const changes: GroupChanges = new Map();
    const byClass = new Map<ClaimClass, GroupChanges>();
    for (const key of new Set(changed.flatMap((keys) => [...keys[kind]]))) {
      const after = candidatesOf(key, kind, patch);
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
  });
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
