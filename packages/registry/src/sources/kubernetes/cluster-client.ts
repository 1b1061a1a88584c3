import { badAnswer, openAsker, type AskerOptions } from '@skep/core/cluster/ask-cluster.ts';
import { watchEvents, type WatchEvent } from '@skep/core/cluster/watch-events.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { groupPath, listPath, type ObjectGroup, type ObjectKind } from './object-kinds.ts';

/** One kind of object, in one namespace or in all of them. */
export interface Scope {
  readonly kind: ObjectKind;
  readonly namespace: string | undefined;
}

export interface ListPage {
  readonly items: readonly unknown[];
  readonly resourceVersion: string;
  /** Where the next page begins; undefined on the last one. */
  readonly next: string | undefined;
}

/** The few questions that are asked of an API server (Kubernetes API concepts: list, watch, discovery). */
export interface Cluster {
  /** Fails as `Client.get`, with 410 where the next page is too old, and with `source/bad-answer`. */
  readonly list: (
    scope: Scope,
    page: { readonly limit: number; readonly next: string | undefined },
    signal: AbortSignal,
  ) => Promise<ListPage>;
  /**
   * What changes after that version. Resolves when the server has agreed; ends when the server ends it, after
   * `WATCH_SECONDS` at the latest. Fails as `list`, with 410 where the version is too old, also while it is read.
   */
  readonly watch: (scope: Scope, after: string, signal: AbortSignal) => Promise<AsyncIterable<WatchEvent>>;
  /** The plural names of the kinds of a group that the server says it has. What is no plain list fails. */
  readonly kindsOf: (group: ObjectGroup, signal: AbortSignal) => Promise<readonly unknown[]>;
  readonly close: () => void;
}

/** Below the silence after which a connection counts as dead, so that a server with nothing to tell is none. */
const WATCH_SECONDS = 50;
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
const MAX_DISCOVERY_BYTES = 4 * 1024 * 1024;
const JSON_TYPE = 'application/json';
const META = `g=meta.k8s.io;v=v1,${JSON_TYPE}`;

export function openCluster(options: AskerOptions): Cluster {
  const { ask, getJson, close } = openAsker(options);
  return {
    close,
    list: async ({ kind, namespace }, { limit, next }, signal) => {
      const path = listPath(kind, namespace);
      const query = { limit: String(limit), ...(next === undefined ? {} : { continue: next }) };
      const accept = acceptOf(kind, 'PartialObjectMetadataList');
      return pageOf(await getJson({ path, query, accept }, MAX_PAGE_BYTES, signal), path);
    },
    watch: async ({ kind, namespace }, after, signal) => {
      const query = {
        watch: 'true',
        resourceVersion: after,
        allowWatchBookmarks: 'true',
        timeoutSeconds: String(WATCH_SECONDS),
      };
      const accept = acceptOf(kind, 'PartialObjectMetadata');
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(2 * WATCH_SECONDS * 1_000)]);
      return watchEvents(await ask({ path: listPath(kind, namespace), query, accept }, inTime));
    },
    kindsOf: async (group, signal) => {
      const path = groupPath(group);
      try {
        const { kind, resources } = await getJson({ path }, MAX_DISCOVERY_BYTES, signal);
        if (kind === 'APIResourceList' && Array.isArray(resources)) return namesOf(resources);
        throw badAnswer(path, 'no list of resources');
      } catch (error) {
        if (statusOf(error) !== 404) throw error;
      }
      // What is no API server, or not up yet, answers 404 to anything.
      const { kind, groups } = await getJson({ path: 'apis' }, MAX_DISCOVERY_BYTES, signal);
      if (kind !== 'APIGroupList' || !Array.isArray(groups)) throw badAnswer('apis', 'no list of groups');
      if (!groups.some((one: unknown) => isRecord(one) && servesVersion(one, group))) return [];
      throw badAnswer(path, '404, though it lists it,');
    },
  };
}

function namesOf(items: readonly unknown[]): unknown[] {
  return items.map((one) => (isRecord(one) ? one['name'] : undefined));
}

function servesVersion({ name, versions }: Readonly<Record<string, unknown>>, group: ObjectGroup): boolean {
  const isIt = (one: unknown): boolean => isRecord(one) && one['version'] === group.version;
  return name === group.group && (!Array.isArray(versions) || versions.some(isIt));
}

function acceptOf({ isMetadataOnly }: ObjectKind, as: string): string {
  return isMetadataOnly ? `${JSON_TYPE};as=${as};${META}` : JSON_TYPE;
}

function pageOf({ kind, metadata, items }: Readonly<Record<string, unknown>>, path: string): ListPage {
  const { resourceVersion, continue: next } = isRecord(metadata) ? metadata : {};
  if (typeof kind !== 'string' || !kind.endsWith('List')) throw badAnswer(path, 'no list of objects');
  // A list without any may leave its items out.
  const listed = items ?? [];
  if (typeof resourceVersion !== 'string' || resourceVersion === '' || !Array.isArray(listed)) {
    throw badAnswer(path, 'no list of objects');
  }
  return { items: listed, resourceVersion, next: typeof next === 'string' && next !== '' ? next : undefined };
}
