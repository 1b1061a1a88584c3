import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { MemoryProgram } from '../doubles/program.ts';
import { STDIO_SPEC } from '../doubles/stdio-spec.ts';
import { MemoryWorkload } from '../doubles/workload.ts';
import { within } from './pod-life.ts';
import { answerUpgrade } from './pod-endpoint.fixture.ts';

// What a cluster does beside its API server: makes the pod of a StatefulSet, runs its server (in this process), tells how it is
// and ends it, as the StatefulSet controller and a kubelet do.

type Members = Readonly<Record<string, unknown>>;

/** Asks an API server as one who may do everything; undefined for what is not there. */
export type Call = (method: string, path: string, body?: object) => Promise<Members | undefined>;

interface RunningServer {
  readonly uid: unknown;
  readonly workload: MemoryWorkload;
  startedAt: string;
  told: string;
}

const LOOK_MS = 15;

export class PodMachine {
  /** Where ports of pods really are. */
  readonly ports = new Map<number, number>();
  /** Says that images cannot be fetched. */
  image: (reference: string) => MemoryProgram | undefined;
  /** Pods are not ready before that. */
  ready = true;
  readonly node: string | undefined;
  readonly #call: Call;
  readonly #namespace: string;
  readonly #servers = new Map<string, RunningServer>();
  readonly #over = new AbortController();
  readonly #done: Promise<void>;

  constructor(call: Call, namespace: string, program: MemoryProgram, node?: string) {
    this.#call = call;
    this.#namespace = namespace;
    this.node = node;
    this.image = () => program;
    this.#done = this.#run();
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#done;
    for (const { workload } of this.#servers.values()) workload.end(0);
  }

  upgrade(request: IncomingMessage, socket: Duplex): void {
    answerUpgrade(request, socket, (name) => {
      const server = this.#servers.get(name);
      if (server === undefined) return undefined;
      return {
        attach: () => (server.workload.running ? server.workload.attach() : undefined),
        portOf: (port) => this.ports.get(port),
      };
    });
  }

  async log(name: string, url: URL, response: ServerResponse): Promise<void> {
    const server = this.#servers.get(name);
    if (server === undefined) {
      response.writeHead(404).end();
      return;
    }
    const { searchParams } = url;
    const tail = searchParams.get('tailLines');
    const since = searchParams.get('sinceTime');
    const signal = AbortSignal.any([this.#over.signal, closed(response)]);
    response.writeHead(200, { 'content-type': 'text/plain' }).flushHeaders();
    for await (const { bytes } of server.workload.logs({
      follow: searchParams.get('follow') === 'true',
      tail: tail === null ? undefined : Number(tail),
      since: since === null ? undefined : Date.parse(since),
      timestamps: searchParams.get('timestamps') === 'true',
      signal,
    })) {
      response.write(bytes);
    }
    response.end();
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#look();
      await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const sets = await this.#items(`apis/apps/v1/namespaces/${this.#namespace}/statefulsets`);
    const pods = new Map((await this.#items(this.#pods)).map((pod) => [nameOf(pod), pod]));
    for (const set of sets) {
      const name = `${nameOf(set)}-0`;
      const wanted = within(set, 'spec')['replicas'] !== 0;
      if (wanted && !pods.has(name)) await this.#makePod(name, set);
    }
    const owners = new Set(sets.map((set) => `${nameOf(set)}-0`));
    for (const [name, pod] of pods) {
      const set = sets.find((one) => `${nameOf(one)}-0` === name);
      if (!owners.has(name) || within(set ?? {}, 'spec')['replicas'] === 0) {
        if (within(pod, 'metadata')['deletionTimestamp'] === undefined)
          await this.#call('DELETE', `${this.#pods}/${name}`);
      }
      await this.#attend(name, pod);
    }
    for (const name of this.#servers.keys()) if (!pods.has(name)) this.#drop(name);
  }

  async #makePod(name: string, set: Members): Promise<void> {
    const template = within(set, 'spec', 'template');
    const spec = { ...within(template, 'spec'), ...(this.node === undefined ? {} : { nodeName: this.node }) };
    const metadata = { ...within(template, 'metadata'), name, namespace: this.#namespace };
    await this.#call('POST', this.#pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  }

  async #attend(name: string, pod: Members): Promise<void> {
    const { uid, deletionTimestamp } = within(pod, 'metadata');
    let server = this.#servers.get(name);
    if (server !== undefined && server.uid !== uid) {
      this.#drop(name);
      server = undefined;
    }
    if (deletionTimestamp !== undefined) {
      if (server !== undefined) {
        server.workload.stop();
        await this.#tell(name, server);
      }
      await this.#call('DELETE', `${this.#pods}/${name}`, {
        gracePeriodSeconds: 0,
        kind: 'DeleteOptions',
        apiVersion: 'v1',
      });
      return;
    }
    server ??= await this.#begin(name, pod);
    if (server !== undefined) await this.#tell(name, server);
  }

  async #begin(name: string, pod: Members): Promise<RunningServer | undefined> {
    const [container = {}] = listOf(within(pod, 'spec')['containers']);
    const reference = String(container['image']);
    const program = this.image(reference);
    if (program === undefined) {
      const waiting = { reason: 'ImagePullBackOff', message: `Back-off pulling image "${reference}"` };
      await this.#status(name, { ready: false, state: { waiting } });
      return undefined;
    }
    const env: Record<string, string> = {};
    for (const { name: key, value, valueFrom } of listOf(container['env'])) {
      env[String(key)] = isRecord(valueFrom)
        ? await this.#secret(within(valueFrom, 'secretKeyRef'))
        : expanded(textOf(value), env);
    }
    const args = (Array.isArray(container['args']) ? container['args'] : []).map((one) =>
      expanded(String(one), env),
    );
    const spec = { ...STDIO_SPEC, name, reference, args, env };
    const workload = new MemoryWorkload({ spec, program, now: () => new Date() });
    const server = { uid: within(pod, 'metadata')['uid'], workload, startedAt: '', told: '' };
    this.#servers.set(name, server);
    server.startedAt = new Date().toISOString();
    workload.start();
    return server;
  }

  async #secret({ name, key }: Members): Promise<string> {
    const secret = await this.#call('GET', `api/v1/namespaces/${this.#namespace}/secrets/${String(name)}`);
    const value = within(secret ?? {}, 'data')[String(key)];
    return Buffer.from(textOf(value), 'base64').toString();
  }

  async #tell(name: string, server: RunningServer): Promise<void> {
    const { exitCode } = server.workload.observe();
    const startedAt = server.startedAt;
    const state =
      exitCode === undefined
        ? { running: { startedAt } }
        : { terminated: { exitCode, reason: 'Error', startedAt } };
    const ready = exitCode === undefined && this.ready;
    const said = JSON.stringify([state, ready]);
    if (server.told === said) return;
    server.told = said;
    await this.#status(name, { ready, state });
  }

  async #status(name: string, { ready, state }: { ready: boolean; state: object }): Promise<void> {
    const status = {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      containerStatuses: [{ name: 'mcp', image: 'x', imageID: '', ready, restartCount: 0, state }],
    };
    await this.#call('PATCH', `${this.#pods}/${name}/status`, { status });
  }

  #drop(name: string): void {
    this.#servers.get(name)?.workload.stop();
    this.#servers.delete(name);
  }

  get #pods(): string {
    return `api/v1/namespaces/${this.#namespace}/pods`;
  }

  async #items(path: string): Promise<readonly Members[]> {
    return listOf((await this.#call('GET', path))?.['items']);
  }
}

/** As a kubelet replaces variables in arguments and variables (Kubernetes, third_party/forked/golang/expansion). */
export function expanded(text: string, env: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$(\$|\(([^)]*)\))/g, (whole, first: string, name: string | undefined) =>
    first === '$' ? '$' : (env[name ?? ''] ?? whole),
  );
}

function closed(response: ServerResponse): AbortSignal {
  const closing = new AbortController();
  response.once('close', () => closing.abort());
  return closing.signal;
}

function nameOf(object: Members): string {
  return String(within(object, 'metadata')['name']);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function listOf(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
