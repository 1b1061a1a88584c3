import { afterEach, beforeEach } from 'vitest';
import { type Clock, systemClock } from '@skep/core/time/clock.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import type {
  NamedSource,
  NewEntry,
  NewVersion,
  SourceKind,
  SourceSettings,
  StoredEntry,
  SyncStatus,
} from '../rows.ts';
import { firstStatus } from '../writes/statuses.ts';
import type { PublishRequest } from '../decisions.ts';
import type { Store } from '../store.ts';
import type { Replacement } from '../writes/replace-entries.ts';

/** A fresh, empty store. `another` opens the same data a second time, as a second process would. */
export interface OpenedStore {
  readonly store: Store;
  another(): Promise<Store>;
  dispose(): Promise<void>;
}

/** Opens what the contract is tried on. Times come from the clock. */
export type OpenStore = (clock: Clock) => Promise<OpenedStore>;

export interface Fixture {
  readonly store: Store;
  readonly clock: SteppedClock;
  another(): Promise<Store>;
}

/** Tells the time that a test sets; waiting takes as long as it takes. */
export interface SteppedClock extends Clock {
  readonly pass: (milliseconds: number) => void;
}

export function steppedClock(): SteppedClock {
  const { now, pass } = manualClock();
  return { ...systemClock, now, pass };
}

/** Opens a store for each test of the suite around it, and looks like the one of the test that runs. */
export function openedForEach(open: OpenStore): Fixture {
  let opened: OpenedStore | undefined;
  let clock = steppedClock();
  const current = (): OpenedStore => {
    if (opened === undefined) throw new Error('the store is only there inside a test');
    return opened;
  };
  beforeEach(async () => {
    clock = steppedClock();
    opened = await open(clock);
  });
  afterEach(() => current().dispose());
  return {
    get store() {
      return current().store;
    },
    get clock() {
      return clock;
    },
    another: () => current().another(),
  };
}

export const ACME = '{"org":["acme"]}';
export const OTHER = '{"org":["other"]}';

export function settingsOf(kind: SourceKind, claims = ''): SourceSettings {
  return { kind, config: '{}', format: null, filter: null, interval: null, claims };
}

export function sourceOf(name: string, kind: SourceKind = 'file', claims = ''): NamedSource {
  return { name, ...settingsOf(kind, claims) };
}

export function versionOf(version: string, document = `{"version":"${version}"}`): NewVersion {
  return { version, title: null, description: null, document, official: null };
}

export function serverOf(name: string, versions: Readonly<Record<string, string>>, claims = ''): NewEntry {
  return {
    kind: 'server',
    namespace: '',
    name,
    claims,
    versions: Object.entries(versions).map(([version, document]) => versionOf(version, document)),
  };
}

export function publishOf(name: string, version: string, claims = ''): PublishRequest {
  return { kind: 'server', namespace: '', name, claims, version: versionOf(version) };
}

export function replacementOf(source: string, entries: readonly NewEntry[], at: string): Replacement {
  return { source, entries, at, status: statusAt(at) };
}

export function statusAt(at: string): SyncStatus {
  return {
    ...firstStatus('file'),
    phase: 'complete',
    message: 'Sync completed successfully',
    lastAttempt: at,
    lastSync: at,
    lastSuccess: at,
    contentHash: `hash-${at}`,
  };
}

/** Names and versions, for comparing at a glance. */
export function outline(entries: readonly StoredEntry[]): string[] {
  return entries.map(
    ({ kind, namespace, name, versions }) =>
      `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}@${versions.map(({ version }) => version).join(',')}`,
  );
}

/** How often the event loop went round, and anybody else had a turn, while something was done. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let next: NodeJS.Immediate;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  next = setImmediate(turn);
  try {
    await work();
  } finally {
    clearImmediate(next);
  }
  return turns;
}

/** A decision that lets everything pass. */
export const allowed = (): void => {};
