import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestCluster, TestObject } from './contract.ts';
import { groupPath, OBJECT_KINDS } from './object-kinds.ts';

// An API server that knows list, watch and discovery, for what a real one cannot be made to do: lie, stall, send too much.
// Beside it the real one passes the same contract (e2e/kubernetes-source.test.ts).

interface Stored extends TestObject {
  readonly version: number;
  readonly uid: string;
}

interface Event {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: Stored;
  readonly version: number;
}

/** Answers a request itself and says true, or leaves it to the server. */
type Intercept = (url: URL, request: IncomingMessage, response: ServerResponse) => boolean;

export class FakeApiServer implements TestCluster {
  readonly kubeconfig: string;
  /** Takes requests over as long as it is set. */
  intercept: Intercept = () => false;
  /** Every request, as `path?query`. */
  readonly asked: string[] = [];
  readonly #folder: string;
  readonly #objects = new Map<string, Stored>();
  readonly #watchers = new Set<{ readonly path: string; readonly response: ServerResponse }>();
  #events: Event[] = [];
  #version = 1;
  #compacted = 0;
  #hasCustomKinds = true;
  #server = createServer();
  #port = 0;

  private constructor(folder: string) {
    this.#folder = folder;
    this.kubeconfig = join(folder, 'kubeconfig.yaml');
  }

  static async start(): Promise<FakeApiServer> {
    const fake = new FakeApiServer(await mkdtemp(join(tmpdir(), 'skep-fake-cluster-')));
    await fake.#listen();
    await fake.writeKubeconfig('token-1');
    return fake;
  }

  async writeKubeconfig(token: string): Promise<void> {
    const config = {
      'current-context': 'here',
      contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${this.#port}` } }],
      users: [{ name: 'u', user: { token } }],
    };
    await writeFile(this.kubeconfig, JSON.stringify(config));
  }

  put(object: TestObject): Promise<void> {
    const key = keyOf(object);
    const before = this.#objects.get(key);
    this.#version += 1;
    const stored = { ...object, version: this.#version, uid: before?.uid ?? `uid-${this.#version}` };
    this.#objects.set(key, stored);
    this.#tell({ type: before === undefined ? 'ADDED' : 'MODIFIED', object: stored, version: this.#version });
    return Promise.resolve();
  }

  remove(object: Pick<TestObject, 'kind' | 'namespace' | 'name'>): Promise<void> {
    const before = this.#objects.get(keyOf(object));
    if (before === undefined) return Promise.resolve();
    this.#version += 1;
    this.#objects.delete(keyOf(object));
    this.#tell({ type: 'DELETED', object: before, version: this.#version });
    return Promise.resolve();
  }

  async removeCustomKinds(): Promise<void> {
    for (const object of this.#objects.values()) if (isCustom(object.kind)) await this.remove(object);
    this.#hasCustomKinds = false;
    this.#cut(({ path }) => path.includes('toolhive'));
  }

  restoreCustomKinds(): Promise<void> {
    this.#hasCustomKinds = true;
    return Promise.resolve();
  }

  async awayWhile(change: () => Promise<void>): Promise<void> {
    await this.#stop();
    await change();
    this.#compacted = this.#version;
    this.#events = [];
    await this.#listen(this.#port);
  }

  async close(): Promise<void> {
    await this.#stop();
    await rm(this.#folder, { recursive: true });
  }

  async #listen(port = 0): Promise<void> {
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    this.#port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  }

  async #stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    this.#watchers.clear();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1');
    this.asked.push(request.url ?? '');
    if (this.intercept(url, request, response)) return;
    if (url.pathname === '/apis') return sendJson(response, 200, this.#groups());
    const kind = OBJECT_KINDS.find((one) => url.pathname.startsWith(`/${groupPath(one)}`));
    if (kind === undefined || (isCustom(kind.kind) && !this.#hasCustomKinds)) {
      response.writeHead(404).end('404 page not found\n');
      return;
    }
    if (url.pathname === `/${groupPath(kind)}`) {
      const resources = OBJECT_KINDS.map(({ plural }) => ({ name: plural }));
      return sendJson(response, 200, { kind: 'APIResourceList', resources });
    }
    if (url.searchParams.get('watch') === 'true') return this.#watch(url, response);
    this.#list(url, response);
  }

  #groups(): object {
    const group = (name: string, version: string) => ({ name, versions: [{ version }] });
    const custom = this.#hasCustomKinds ? [group('toolhive.stacklok.dev', 'v1beta1')] : [];
    return { kind: 'APIGroupList', groups: [group('apps', 'v1'), ...custom] };
  }

  #list(url: URL, response: ServerResponse): void {
    const all = [...this.#objects.values()].filter((object) => isBelow(url.pathname, object));
    const from = Number(url.searchParams.get('continue') ?? 0);
    const to = from + Number(url.searchParams.get('limit') ?? all.length);
    const metadata = {
      resourceVersion: String(this.#version),
      ...(to < all.length ? { continue: String(to) } : {}),
    };
    sendJson(response, 200, { kind: 'List', metadata, items: all.slice(from, to).map(shown) });
  }

  #watch(url: URL, response: ServerResponse): void {
    const after = Number(url.searchParams.get('resourceVersion'));
    if (after < this.#compacted) {
      return sendJson(response, 410, { kind: 'Status', message: 'too old resource version', code: 410 });
    }
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    const watcher = { path: url.pathname, response };
    this.#watchers.add(watcher);
    response.on('close', () => this.#watchers.delete(watcher));
    for (const event of this.#events) if (event.version > after) send(watcher, event);
  }

  #tell(event: Event): void {
    this.#events.push(event);
    for (const watcher of this.#watchers) send(watcher, event);
  }

  #cut(which: (watcher: { readonly path: string }) => boolean): void {
    for (const watcher of this.#watchers) if (which(watcher)) watcher.response.end();
  }
}

function send({ path, response }: { path: string; response: ServerResponse }, event: Event): void {
  if (!isBelow(path, event.object)) return;
  const object = shown({ ...event.object, version: event.version });
  response.write(`${JSON.stringify({ type: event.type, object })}\n`);
}

function isCustom(kind: string): boolean {
  return kind.includes('MCP');
}

function isBelow(path: string, { kind, namespace }: TestObject): boolean {
  const { plural = '' } = OBJECT_KINDS.find((one) => one.kind === kind) ?? {};
  const [, within] = /\/namespaces\/([^/]+)\//.exec(path) ?? [];
  return path.endsWith(`/${plural}`) && (within === undefined || within === namespace);
}

function shown({ namespace, name, annotations, spec, version, uid }: Stored): object {
  return { metadata: { namespace, name, uid, resourceVersion: String(version), annotations }, spec };
}

function keyOf({ kind, namespace, name }: Pick<TestObject, 'kind' | 'namespace' | 'name'>): string {
  return `${kind}/${namespace}/${name}`;
}

export function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
