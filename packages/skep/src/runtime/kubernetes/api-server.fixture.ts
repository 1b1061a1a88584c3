import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { MemoryProgram } from '../doubles/program.ts';
import { within } from './pod-life.ts';
import { patched } from './pod-patch.ts';
import { PodMachine } from './pod-machine.fixture.ts';

// An API server as far as the runtime asks it: objects with versions, server-side apply, watches. The real one passes the same
// contract (e2e/kubernetes-runtime.test.ts); this one can be made to refuse, stall and lie.

type Members = Readonly<Record<string, unknown>>;
type Intercept = (url: URL, request: IncomingMessage, response: ServerResponse) => boolean;

interface Event {
  readonly version: number;
  readonly type: string;
  readonly path: string;
  readonly object: Members;
}

export class FakeCluster {
  readonly folder: string;
  readonly kubeconfig: string;
  machine!: PodMachine;
  intercept: Intercept = () => false;
  readonly #objects = new Map<string, Members>();
  readonly #applied = new Map<string, Members>();
  readonly #events: Event[] = [];
  readonly #watchers = new Set<(event: Event) => void>();
  #version = 1;
  #server = createServer();

  private constructor(folder: string) {
    this.folder = folder;
    this.kubeconfig = join(folder, 'kubeconfig.json');
  }

  static async start(program: MemoryProgram): Promise<FakeCluster> {
    const cluster = new FakeCluster(await mkdtemp(join(tmpdir(), 'skep-cluster-')));
    await cluster.#listen(program);
    return cluster;
  }

  async #listen(program: MemoryProgram): Promise<void> {
    this.#server.on('request', (request, response) => void this.#answer(request, response));
    this.#server.on('upgrade', (request, socket) => this.machine.upgrade(request, socket));
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const config = {
      'current-context': 'here',
      contexts: [{ name: 'here', context: { cluster: 'c', user: 'u', namespace: 'tools' } }],
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
      users: [{ name: 'u', user: { token: 'token-1' } }],
    };
    await writeFile(this.kubeconfig, JSON.stringify(config));
    const call = async (method: string, path: string, body: object = {}): Promise<Members | undefined> => {
      const { status, value } = this.#change(method, `/${path}`, { ...body }, new URLSearchParams());
      return status === 200 || status === 201 ? value : undefined;
    };
    this.machine = new PodMachine(call, 'tools', program);
  }

  /** All paths of objects that are there. */
  paths(): readonly string[] {
    return [...this.#objects.keys()].toSorted();
  }

  object(path: string): Members | undefined {
    return this.#objects.get(path);
  }

  /** As somebody else would. */
  write(method: string, path: string, body: object): Members {
    return this.#change(method, path, { ...body }, new URLSearchParams()).value;
  }

  async close(): Promise<void> {
    await this.machine.close();
    this.#server.closeAllConnections();
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    await rm(this.folder, { recursive: true });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://cluster');
    if (this.intercept(url, request, response)) return;
    const [, pod] = /\/pods\/([^/]+)\/log$/.exec(url.pathname) ?? [];
    if (pod !== undefined) return this.machine.log(pod, url, response);
    if (url.searchParams.get('watch') === 'true') return this.#watch(url, response);
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const body: unknown = text === '' ? {} : JSON.parse(text);
    const applied = request.headers['content-type']?.startsWith('application/apply-patch') === true;
    const method = applied ? 'APPLY' : (request.method ?? 'GET');
    const { status, value } = this.#change(
      method,
      url.pathname,
      isRecord(body) ? body : {},
      url.searchParams,
    );
    sendJson(response, status, value);
  }

  #change(
    method: string,
    path: string,
    body: Members,
    query: URLSearchParams,
  ): { status: number; value: Members } {
    if (path === '/version') return { status: 200, value: { gitVersion: 'v1.35.4' } };
    if (path === '/apis') return { status: 200, value: { groups: [{ name: 'apps' }] } };
    const [, base = '', plural = '', name, part] =
      /^(\/.+?\/namespaces\/[^/]+)\/([a-z]+)(?:\/([^/]+))?(?:\/(\w+))?$/.exec(path) ?? [];
    const at = `${base}/${plural}/${name ?? String(within(body, 'metadata')['name'])}`;
    const there = this.#objects.get(at);
    if (method === 'GET' && name === undefined)
      return { status: 200, value: this.#list(`${base}/${plural}/`, query) };
    if (method === 'POST')
      return there === undefined ? this.#store(at, body, 201) : failure(409, 'already exists');
    if (method === 'APPLY') return this.#apply(at, there, body, query.get('force') === 'true');
    if (there === undefined) return failure(404, `${plural} "${name ?? ''}" not found`);
    if (method === 'GET') return { status: 200, value: there };
    if (method === 'PATCH') {
      if (isOther(there, body)) return failure(409, 'the object has been modified');
      return this.#store(
        at,
        part === 'status' ? { ...there, status: body['status'] } : patched(there, body),
        200,
      );
    }
    const { uid } = within(body, 'preconditions');
    if (uid !== undefined && uid !== within(there, 'metadata')['uid'])
      return failure(409, 'the uid is another one');
    return this.#delete(at, there, plural === 'pods' ? (body['gracePeriodSeconds'] ?? 10) : 0);
  }

  #apply(
    at: string,
    there: Members | undefined,
    body: Members,
    force: boolean,
  ): { status: number; value: Members } {
    const before = this.#applied.get(at);
    if (there === undefined && within(body, 'metadata')['uid'] !== undefined)
      return failure(409, 'uid mismatch');
    if (there !== undefined && !force && before === undefined)
      return failure(409, 'conflict with "somebody"');
    if (there !== undefined && isOther(there, body)) return failure(409, 'the object has been modified');
    this.#applied.set(at, body);
    const said = within(before ?? {}, 'metadata', 'annotations');
    const now = within(body, 'metadata', 'annotations');
    const gone = Object.keys(said).filter((key) => !(key in now));
    const kept = patched(there ?? {}, {
      metadata: { annotations: Object.fromEntries(gone.map((key) => [key, null])) },
    });
    const data = body['data'] === undefined ? {} : { data: body['data'] };
    const merged = patched(kept, {
      metadata: body['metadata'],
      apiVersion: body['apiVersion'],
      kind: body['kind'],
    });
    return this.#store(
      at,
      { ...merged, ...(body['spec'] === undefined ? {} : { spec: body['spec'] }), ...data },
      there === undefined ? 201 : 200,
    );
  }

  #delete(at: string, there: Members, grace: unknown): { status: number; value: Members } {
    if (grace !== 0) {
      if (within(there, 'metadata')['deletionTimestamp'] !== undefined) return { status: 200, value: there };
      const metadata = { ...within(there, 'metadata'), deletionTimestamp: new Date().toISOString() };
      return this.#store(at, { ...there, metadata }, 200);
    }
    this.#objects.delete(at);
    this.#applied.delete(at);
    this.#version += 1;
    this.#tell({ version: this.#version, type: 'DELETED', path: at, object: there });
    return { status: 200, value: { kind: 'Status', status: 'Success' } };
  }

  #store(at: string, object: Members, status: number): { status: number; value: Members } {
    const there = this.#objects.get(at);
    this.#version += 1;
    const { uid = randomUUID(), creationTimestamp = new Date().toISOString() } = within(
      there ?? {},
      'metadata',
    );
    const metadata = {
      ...within(object, 'metadata'),
      uid,
      creationTimestamp,
      resourceVersion: String(this.#version),
    };
    const stored = { ...object, metadata };
    this.#objects.set(at, stored);
    this.#tell({
      version: this.#version,
      type: there === undefined ? 'ADDED' : 'MODIFIED',
      path: at,
      object: stored,
    });
    return { status, value: stored };
  }

  #list(below: string, query: URLSearchParams): Members {
    const wanted = (query.get('labelSelector') ?? '').split(',').filter(Boolean);
    const items = [...this.#objects].filter(([path]) => path.startsWith(below)).map(([, object]) => object);
    const fits = (object: Members): boolean =>
      wanted.every((pair) => {
        const [key = '', value] = pair.split('=');
        return within(object, 'metadata', 'labels')[key] === value;
      });
    return { kind: 'List', metadata: { resourceVersion: String(this.#version) }, items: items.filter(fits) };
  }

  #watch(url: URL, response: ServerResponse): void {
    const name = url.searchParams.get('fieldSelector')?.split('=')[1] ?? '';
    const version = url.searchParams.get('resourceVersion');
    const after = Number(version ?? this.#version);
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    // Without a version a watch begins with what is there (Kubernetes API concepts, "get state and start at any").
    const there = this.#objects.get(`${url.pathname}/${name}`);
    if (version === null && there !== undefined)
      response.write(`${JSON.stringify({ type: 'ADDED', object: there })}\n`);
    const send = ({ version, type, path, object }: Event): void => {
      if (version > after && path === `${url.pathname}/${name}`)
        response.write(`${JSON.stringify({ type, object })}\n`);
    };
    for (const event of this.#events) send(event);
    this.#watchers.add(send);
    response.once('close', () => this.#watchers.delete(send));
  }

  #tell(event: Event): void {
    this.#events.push(event);
    for (const send of this.#watchers) send(event);
  }
}

/** The version or uid that is said is not that of the object. */
function isOther(there: Members, body: Members): boolean {
  const { resourceVersion, uid } = within(body, 'metadata');
  const now = within(there, 'metadata');
  return (
    (resourceVersion !== undefined && resourceVersion !== now['resourceVersion']) ||
    (uid !== undefined && uid !== now['uid'])
  );
}

export function failure(code: number, message: string): { status: number; value: Members } {
  return { status: code, value: { kind: 'Status', status: 'Failure', code, message } };
}

export function sendJson(response: ServerResponse, status: number, value: Members): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
