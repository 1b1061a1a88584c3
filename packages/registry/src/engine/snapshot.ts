import type { RawClaims } from '@skep/auth/claims/claims.ts';
import type { ServedEntry, SourceBlock } from './block.ts';
import { type SnapshotVisibility, snapshotVisibility } from '../access/visibility.ts';
import { decodeClaimSet, type ClaimClass, type ClaimSet } from '../access/claim-set.ts';
import { KeptPages } from './kept-pages.ts';
import type { EntryKind } from '../store/rows.ts';
import { compareBytes } from '../store/reads/byte-order.ts';
import { ClaimClasses } from './claim-classes.ts';
import { SortedList } from './sorted-list.ts';
import type { GroupIndex, KeyGroup } from './visible-groups.ts';

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
  readonly groups: Readonly<Record<EntryKind, GroupIndex>>;
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

/** Says whether entries of a claim class exist for the caller. */
export type Visible = (claimClass: ClaimClass) => boolean;

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
      groups: {
        server: groupByKey('server', linked, classes),
        skill: groupByKey('skill', linked, classes),
        plugin: groupByKey('plugin', linked, classes),
      },
    });
  }
  const claimSets = classes.all();
  return { registries, claimSets, visibility: snapshotVisibility(claimSets), pages: new KeptPages() };
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
export function winner(group: KeyGroup, visible: Visible): ServedEntry | undefined {
  // No closure: a page looks at hundreds of groups.
  for (const { claimClass, entry } of group.candidates) if (visible(claimClass)) return entry;
  return undefined;
}

/** The entry of exactly this key that the caller sees. */
export function findEntry({ all }: GroupIndex, key: string, visible: Visible): ServedEntry | undefined {
  const group = all.find(key);
  return group === undefined ? undefined : winner(group, visible);
}
