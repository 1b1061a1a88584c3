import type { Readable } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { badStatus, saidIn, statusOf } from '@skep/core/fetch/client.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import {
  openRequester,
  shownUrl,
  withDeadline,
  type Requester,
  type StreamedAnswer,
} from '@skep/core/fetch/requester.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { judge } from '@skep/core/json/judge.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { clusterAccess, type ClusterAccess, type ClusterPlace } from './cluster-access.ts';
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

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: Readonly<Record<string, unknown>>;
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
const ANSWER_MS = 30_000;
/** Objects have at most 1.5 MB as etcd holds them. What is larger is read in the same thread that answers callers. */
const MAX_EVENT_BYTES = 3 * 1024 * 1024;
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
const MAX_DISCOVERY_BYTES = 4 * 1024 * 1024;
/** What the API server itself accepts (Go reads 10,000 levels), so that no object hides the others of its list. */
const MAX_LEVELS = 20_000;
const JSON_TYPE = 'application/json';
const META = `g=meta.k8s.io;v=v1,${JSON_TYPE}`;

export interface ClusterOptions extends ClusterPlace {
  /** `skep-registry/<version>`. */
  readonly userAgent: string;
}

export function openCluster(options: ClusterOptions): Cluster {
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
      return eventsOf(await ask({ path: listPath(kind, namespace), query, accept }, inTime));
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

interface Question {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly accept?: string;
}

/** Who sends requests with what the cluster is shown at that moment. */
function openAsker({ userAgent, ...place }: ClusterOptions) {
  const requesters = new Map<string, Requester>();
  /** Who trusts other authorities is another requester; those of before have no more requests. */
  function requesterFor({ ca, verify }: ClusterAccess): Requester {
    const key = JSON.stringify([ca, verify]);
    const known = requesters.get(key);
    if (known !== undefined) return known;
    const made = openRequester({ allowPrivate: true, verify, ...(ca === undefined ? {} : { onlyCa: [ca] }) });
    requesters.set(key, made);
    return made;
  }
  /** The answer to a request, if it is a success; only the address of the cluster itself is shown anything. */
  async function send(
    access: ClusterAccess,
    url: URL,
    accept: string,
    signal: AbortSignal,
  ): Promise<StreamedAnswer> {
    const { headers, identity } = access.shown;
    const said = { 'user-agent': userAgent, 'accept-encoding': 'identity', accept, ...headers };
    const shown = { headers: said, ...(identity === undefined ? {} : { identity }) };
    const answer = await requesterFor(access).send(url, { showTo: () => shown, redirects: 'answer', signal });
    if (answer.status === 200) return answer;
    const words = await saidIn(answer.body);
    answer.drop();
    throw badStatus({ url, status: answer.status, said: words });
  }
  return {
    ask: async ({ path, query = {}, accept = JSON_TYPE }: Question, signal: AbortSignal) => {
      const access = await clusterAccess(place);
      return send(access, addressOf(access, path, query), accept, signal);
    },
    getJson: async (
      { path, query = {}, accept = JSON_TYPE }: Question,
      maxBytes: number,
      signal: AbortSignal,
    ) => {
      const access = await clusterAccess(place);
      const url = addressOf(access, path, query);
      return withDeadline({ url, timeoutMs: ANSWER_MS, signal }, async (inTime) => {
        const { body, headers } = await send(access, url, accept, inTime);
        const text = (await readLimited(body, maxBytes, headers['content-length'])).toString('utf8');
        const value = valueOf(text);
        if (isRecord(value)) return value;
        throw badAnswer(url, 'no JSON object');
      });
    },
    close: () => {
      for (const requester of requesters.values()) requester.close();
    },
  };
}

function addressOf({ server }: ClusterAccess, path: string, query: Readonly<Record<string, string>>): URL {
  const url = new URL(server);
  url.pathname = `${url.pathname.replace(/\/+$/u, '')}/${path}`;
  url.search = new URLSearchParams(query).toString();
  return url;
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

const TYPES: readonly unknown[] = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'];

async function* eventsOf({ body, drop, url }: StreamedAnswer): AsyncGenerator<WatchEvent> {
  try {
    for await (const line of linesOf(body, MAX_EVENT_BYTES)) {
      if (line.trim() === '') continue;
      const event = valueOf(line);
      const { type, object } = isRecord(event) ? event : {};
      if (!isRecord(object)) throw badAnswer(url, 'no event');
      if (type === 'ERROR') throw statusError(url, object);
      if (!isType(type)) throw badAnswer(url, 'an event of an unknown type');
      yield { type, object };
    }
  } catch (error) {
    if (error instanceof SkepError) throw error;
    // A connection that ends in the middle is the same as one that cannot be made.
    const message = `the watch of "${shownUrl(url)}" was cut`;
    throw new SkepError('fetch/unreachable', { message, cause: error });
  } finally {
    drop();
  }
}

/** Undefined for what is no JSON. */
function valueOf(text: string): unknown {
  return judge(text, MAX_LEVELS) === 'json' ? parseJson(text) : undefined;
}

function isType(type: unknown): type is WatchEvent['type'] {
  return TYPES.includes(type);
}

/** What a server says in place of an event (a `Status` of the Kubernetes API). */
function statusError(url: URL, { code, message }: Readonly<Record<string, unknown>>): SkepError {
  const said = typeof message === 'string' ? message.slice(0, 300) : undefined;
  return badStatus({ url, status: typeof code === 'number' ? code : 500, said });
}

/** Lines of at most so many bytes; the last one need not be ended. Fails with `fetch/too-large`. */
async function* linesOf(body: Readable, maxBytes: number): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let held = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, end));
      held += end - from;
      if (held > maxBytes) throw tooLong(maxBytes);
      yield Buffer.concat(parts).toString('utf8');
      [parts, held, from] = [[], 0, end + 1];
    }
    parts.push(chunk.subarray(from));
    held += chunk.length - from;
    if (held > maxBytes) throw tooLong(maxBytes);
  }
  if (held > 0) yield Buffer.concat(parts).toString('utf8');
}

function tooLong(maxBytes: number): SkepError {
  return new SkepError('fetch/too-large', {
    message: `an event of the watch is larger than ${maxBytes} bytes`,
  });
}

function badAnswer(where: URL | string, what: string): SkepError {
  const shown = typeof where === 'string' ? where : shownUrl(where);
  return new SkepError('source/bad-answer', {
    message: `the cluster answered ${what} to "${shown}"`,
    hint: 'check that the address is one of a Kubernetes API server',
  });
}
