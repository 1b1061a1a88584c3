import type { Readable } from 'node:stream';
import type { Asker, Question } from '@skep/core/cluster/ask-cluster.ts';
import { watchEvents, type WatchEvent } from '@skep/core/cluster/watch-events.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { Manifest } from './objects.ts';
import { clusterFailure } from './failure.ts';

export type Members = Readonly<Record<string, unknown>>;

/** Kinds of objects that are made or read, with where they are found. */
const RESOURCES = {
  StatefulSet: { plural: 'statefulsets', path: 'apis/apps/v1' },
  NetworkPolicy: { plural: 'networkpolicies', path: 'apis/networking.k8s.io/v1' },
  Service: { plural: 'services', path: 'api/v1' },
  Secret: { plural: 'secrets', path: 'api/v1' },
  Pod: { plural: 'pods', path: 'api/v1' },
} as const;

export type Kind = keyof typeof RESOURCES;

export interface ObjectRef {
  readonly kind: Kind;
  readonly name: string;
}

/** Who says a field of an object (Kubernetes server-side apply). */
const MANAGER = 'skep';
const MAX_BYTES = 8 * 1024 * 1024;
const WATCH_SECONDS = 50;
const never = new AbortController().signal;

/** The objects of one namespace. Every call fails with `runtime/*` (see `clusterFailure`). */
export class ClusterApi {
  readonly namespace: string;
  readonly #asker: Asker;

  constructor(asker: Asker, namespace: string) {
    this.#asker = asker;
    this.namespace = namespace;
  }

  /** What the API server says of itself. */
  version(signal: AbortSignal): Promise<Members> {
    return this.#json({ path: 'version' }, { verb: 'get', resource: 'version' }, signal);
  }

  /** Whether the cluster has objects of that group. */
  async hasGroup(group: string): Promise<boolean> {
    const asked = { verb: 'get', resource: 'apis' };
    const { groups } = await this.#json({ path: 'apis' }, asked, never);
    return Array.isArray(groups) && groups.some((one: unknown) => isRecord(one) && one['name'] === group);
  }

  async get(ref: ObjectRef, signal: AbortSignal = never): Promise<Members | undefined> {
    try {
      return await this.#json({ path: this.#path(ref) }, asking('get', ref), signal);
    } catch (error) {
      if (statusOf((error as Error).cause) === 404) return undefined;
      throw error;
    }
  }

  async list(kind: Kind, selector: string): Promise<readonly Members[]> {
    const path = this.#path({ kind, name: '' }).replace(/\/$/, '');
    const listed: Members[] = [];
    for (let next: unknown = ''; typeof next === 'string';) {
      const query = { labelSelector: selector, limit: '200', ...(next === '' ? {} : { continue: next }) };
      const { items, metadata } = await this.#json(
        { path, query },
        { verb: 'list', resource: RESOURCES[kind].plural },
        never,
      );
      listed.push(...(Array.isArray(items) ? items.filter(isRecord) : []));
      const more = isRecord(metadata) ? metadata['continue'] : undefined;
      next = more === '' ? undefined : more;
    }
    return listed;
  }

  /** Fails with a conflict (`isConflict`) where an object of that name is there. */
  create(manifest: Manifest & Members): Promise<Members> {
    const ref = refOf(manifest);
    const path = this.#path({ ...ref, name: '' }).replace(/\/$/, '');
    const body = { type: 'application/json', value: manifest };
    const question = { path, query: { fieldManager: MANAGER }, method: 'POST', body } as const;
    return this.#json(question, asking('create', ref), never);
  }

  /**
   * Server-side apply: fields that this manager said before and does not say now go. By force, what others said of the same
   * fields counts no more; without, that is a conflict.
   */
  apply(manifest: Manifest & Members, force: boolean): Promise<Members> {
    const ref = refOf(manifest);
    // JSON is YAML, which is what the type is called.
    const body = { type: 'application/apply-patch+yaml', value: manifest };
    const query = { fieldManager: MANAGER, ...(force ? { force: 'true' } : {}) };
    return this.#json({ path: this.#path(ref), query, method: 'PATCH', body }, asking('patch', ref), never);
  }

  /** Changes the members that are said, of the version of the object that is said (RFC 7396). */
  merge(
    ref: ObjectRef,
    resourceVersion: unknown,
    { metadata = {}, ...rest }: { readonly metadata?: object } & Members,
  ): Promise<Members> {
    const value = { ...rest, metadata: { ...metadata, resourceVersion } };
    const body = { type: 'application/merge-patch+json', value };
    const question = {
      path: this.#path(ref),
      query: { fieldManager: MANAGER },
      method: 'PATCH',
      body,
    } as const;
    return this.#json(question, asking('patch', ref), never);
  }

  /** Only the very object with that uid; one that is gone is fine. */
  async delete(ref: ObjectRef, uid: unknown, graceSeconds?: number): Promise<void> {
    const value = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid },
      propagationPolicy: 'Background',
      ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
    };
    const body = { type: 'application/json', value };
    try {
      await this.#json({ path: this.#path(ref), method: 'DELETE', body }, asking('delete', ref), never);
    } catch (error) {
      if (statusOf((error as Error).cause) !== 404) throw error;
    }
  }

  /** Changes of an object after that version, until the server has watched long enough. */
  async *changes(ref: ObjectRef, after: unknown, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    const query = {
      watch: 'true',
      fieldSelector: `metadata.name=${ref.name}`,
      timeoutSeconds: String(WATCH_SECONDS),
      ...(typeof after === 'string' ? { resourceVersion: after } : {}),
    };
    const path = this.#path({ ...ref, name: '' }).replace(/\/$/, '');
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(2 * WATCH_SECONDS * 1_000)]);
    try {
      yield* watchEvents(await this.#asker.ask({ path, query }, inTime));
    } catch (error) {
      // Too old a version: whoever asks looks again.
      if (statusOf(error) === 410) return;
      throw clusterFailure(error, { ...asking('watch', ref), namespace: this.namespace }, signal);
    }
  }

  /** Resolves at the first change of an object after that version, or when the server has watched long enough. */
  async changed(ref: ObjectRef, after: unknown, signal: AbortSignal): Promise<void> {
    for await (const { type } of this.changes(ref, after, signal)) if (type !== 'BOOKMARK') return;
  }

  /** What a container wrote, stdout and stderr together; undefined where none has begun yet. */
  async log(
    pod: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Readable | undefined> {
    const ref = { kind: 'Pod', name: pod } as const;
    try {
      const answer = await this.#asker.ask({ path: `${this.#path(ref)}/log`, query, accept: '*/*' }, signal);
      return answer.body;
    } catch (error) {
      if ([400, 404].includes(statusOf(error) ?? 0)) return undefined;
      throw clusterFailure(
        error,
        { verb: 'get', resource: 'pods/log', name: pod, namespace: this.namespace },
        signal,
      );
    }
  }

  /** Where a part of a pod is found that is spoken to, such as `attach`. */
  podPath(pod: string, part: string): string {
    return `${this.#path({ kind: 'Pod', name: pod })}/${part}`;
  }

  #path({ kind, name }: ObjectRef): string {
    const { path, plural } = RESOURCES[kind];
    return `${path}/namespaces/${this.namespace}/${plural}/${name}`;
  }

  async #json(
    question: Question,
    asked: { readonly verb: string; readonly resource: string; readonly name?: string },
    signal: AbortSignal,
  ): Promise<Members> {
    try {
      return await this.#asker.getJson(question, MAX_BYTES, signal);
    } catch (error) {
      throw clusterFailure(error, { ...asked, namespace: this.namespace }, signal);
    }
  }
}

function asking(verb: string, { kind, name }: ObjectRef) {
  return { verb, resource: RESOURCES[kind].plural, name };
}

function refOf({ kind, metadata: { name } }: Manifest): ObjectRef {
  return { kind: kind as Kind, name };
}
