import type { Skipped } from '@skep/core/catalog/registry-file.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { EXTENSION_NAMESPACE, PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { StoredEntry } from '../../store/rows.ts';
import type { Following, FollowOptions, WatchedServer, WatchedState } from '../watched-source.ts';
import type { Cluster, Scope } from './cluster-client.ts';
import { groupPath, OBJECT_KINDS, type ObjectKindName } from './object-kinds.ts';
import { reflectScope } from './reflect-scope.ts';
import { Room } from './room.ts';
import { type ContentLimits, ScopeContents } from './scope-contents.ts';

export interface ClusterFollowOptions extends FollowOptions {
  /** Closed with the following. */
  readonly cluster: Cluster;
  readonly kinds: readonly ObjectKindName[];
  /** Undefined for all. */
  readonly namespaces: readonly string[] | undefined;
  readonly limits: ContentLimits;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Discovery is asked at most so often, however many scopes wait for a kind. */
const DISCOVERY_MS = 700;

/** Follows every kind in every namespace by itself, so that what one of them cannot tell keeps nobody from the others. */
export function followCluster(options: ClusterFollowOptions): Following {
  const { kinds, namespaces, limits, clock, random, changed } = options;
  const ending = new AbortController();
  const cluster = withSharedDiscovery(options.cluster, clock);
  const inNamespaces = namespaces === undefined ? [undefined] : [...new Set(namespaces)];
  const room = new Room(limits.maxCatalogueSize, new Set(options.before.map(({ name }) => name)));
  const contents = OBJECT_KINDS.filter(({ kind }) => kinds.includes(kind)).flatMap((kind) =>
    inNamespaces.map((namespace) => new ScopeContents({ kind, namespace }, limits, room)),
  );
  let before = options.before.map((entry) => ({ entry, origin: originOf(entry) }));
  const { signal } = ending;
  const running = contents.map((one) => reflectScope(one, { cluster, clock, random, signal, changed }));
  return {
    state: () => {
      const state = stateOf(contents, before);
      if (state.isWhole) before = [];
      return state;
    },
    close: async () => {
      ending.abort();
      await Promise.all(running);
      cluster.close();
    },
  };
}

/** Which object an entry of the store was made of. */
interface Origin {
  readonly kind: unknown;
  readonly namespace: unknown;
}

interface Before {
  readonly entry: StoredEntry;
  readonly origin: Origin | undefined;
}

function stateOf(contents: readonly ScopeContents[], before: readonly Before[]): WatchedState {
  /** What holds each name: of several objects the one whose kind comes first, also while it is not shown. */
  const holders = new Map<string, ObjectKindName>();
  const servers: WatchedServer[] = [];
  const kept: StoredEntry[] = [];
  const skipped: Skipped[] = [];
  const warnings: string[] = [];
  for (const { scope, derived, isRead } of contents) {
    const { kind } = scope.kind;
    for (const one of derived.values()) {
      const name = 'server' in one ? one.server.name : one.name;
      const holder = holders.get(name);
      if (holder !== undefined) skipped.push({ name, reason: `a ${holder} of the same name is there` });
      else if (!('server' in one)) skipped.push({ name, reason: one.refusal });
      else servers.push(one.server);
      holders.set(name, holder ?? kind);
      warnings.push(...one.warnings);
    }
    if (isRead) continue;
    for (const { entry, origin } of before) {
      if (origin === undefined || !isIn(scope, origin) || holders.has(entry.name)) continue;
      kept.push(entry);
      holders.set(entry.name, kind);
    }
  }
  return {
    servers,
    kept,
    skipped,
    warnings,
    faults: contents.flatMap(({ fault }) => fault ?? []),
    isTried: contents.every(({ isTried }) => isTried),
    isWhole: contents.every(({ isRead }) => isRead),
  };
}

function isIn({ kind, namespace }: Scope, origin: Origin): boolean {
  return origin.kind === kind.kind && (namespace === undefined || origin.namespace === namespace);
}

/** What `deriveServer` has written into the document. */
function originOf({ versions }: StoredEntry): Origin | undefined {
  const blocks = Object.values(
    membersOf(parsedJson(versions[0]?.document ?? ''), '_meta', PUBLISHER_META, EXTENSION_NAMESPACE),
  );
  const { kind, namespace } = membersOf(blocks[0], 'metadata', 'kubernetes');
  return kind === undefined ? undefined : { kind, namespace };
}

function membersOf(value: unknown, ...path: readonly string[]): Readonly<Record<string, unknown>> {
  const found = path.reduce((at: unknown, step) => (isRecord(at) ? at[step] : undefined), value);
  return isRecord(found) ? found : {};
}

function withSharedDiscovery(cluster: Cluster, clock: Clock): Cluster {
  const asked = new Map<string, { readonly at: number; readonly kinds: ReturnType<Cluster['kindsOf']> }>();
  return {
    ...cluster,
    kindsOf: (group, signal) => {
      const key = groupPath(group);
      const known = asked.get(key);
      if (known !== undefined && clock.elapsed() - known.at < DISCOVERY_MS) return known.kinds;
      const kinds = cluster.kindsOf(group, signal);
      asked.set(key, { at: clock.elapsed(), kinds });
      return kinds;
    },
  };
}
