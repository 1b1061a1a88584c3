import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { forever } from '../contract/bench.ts';
import { ProbeCaller } from '../contract/probe-caller.ts';
import { STDIO_SPEC } from '../doubles/stdio-spec.ts';
import { choosePort } from '../free-port.ts';
import type { Runtime, WorkloadSpec } from '../runtime.ts';
import { within } from './pod-life.ts';
import type { Call, PodMachine } from './pod-machine.fixture.ts';

export interface ClusterUnderTest {
  /** Opens the runtime anew, as another process would. */
  readonly open: (owner?: string) => Promise<Runtime>;
  /** Asks the API server as somebody else. */
  readonly call: Call;
  readonly machine: PodMachine;
  readonly namespace: string;
}

/** What the runtime promises of objects in a cluster, beside what every runtime does; for a real API server and one in memory. */
export function clusterContract(under: () => ClusterUnderTest): void {
  const bench = new ClusterBench(under);
  afterEach(() => bench.clear());

  secretsContract(bench);
  foreignContract(bench);
  writersContract(bench);
  startingContract(bench);
  httpContract(bench);
  refusalsContract(bench);
}

/** One cluster with the workloads of the current test. */
class ClusterBench {
  readonly under: () => ClusterUnderTest;
  readonly #names: string[] = [];
  #next = 0;

  constructor(under: () => ClusterUnderTest) {
    this.under = under;
  }

  open(owner?: string): Promise<Runtime> {
    return this.under().open(owner);
  }

  spec(changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
    this.#next += 1;
    const name = changes.name ?? `w${this.#next}`;
    this.#names.push(name);
    return { ...STDIO_SPEC, reference: 'ghcr.io/acme/probe:1', ...changes, name };
  }

  at(group: string, plural: string, name: string): string {
    return `${group}/namespaces/${this.under().namespace}/${plural}/${name}`;
  }

  setAt(name: string): string {
    return this.at('apis/apps/v1', 'statefulsets', name);
  }

  secretAt(name: string): string {
    return this.at('api/v1', 'secrets', `mcp-${name}-env`);
  }

  get(path: string): ReturnType<Call> {
    return this.under().call('GET', path);
  }

  async imageOf(name: string): Promise<unknown> {
    const template = within((await this.get(this.setAt(name))) ?? {}, 'spec', 'template', 'spec');
    return (template['containers'] as readonly Record<string, unknown>[])[0]?.['image'];
  }

  async clear(): Promise<void> {
    const runtime = await this.open();
    for (const name of this.#names.splice(0)) await runtime.remove(name);
  }
}

/** Values of secret variables. */
function secretsContract(bench: ClusterBench): void {
  describe('secrets', () => {
    test('reach the server, and are in a Secret alone, while it runs', async () => {
      const runtime = await bench.open();
      const wanted = bench.spec({ secretEnv: { TOKEN: 'very-s3cret', OTHER: '' } });
      await runtime.create(wanted);
      expect(await bench.get(bench.secretAt(wanted.name))).toBeUndefined();
      await runtime.start(wanted.name, wanted.secretEnv);
      const probe = new ProbeCaller(await runtime.attach(wanted.name));
      expect(await probe.call('probe/env', { name: 'TOKEN' })).toBe('very-s3cret');
      const set = JSON.stringify(await bench.get(bench.setAt(wanted.name)));
      const pod = JSON.stringify(await bench.get(bench.at('api/v1', 'pods', `${wanted.name}-0`)));
      for (const text of [set, pod]) {
        expect(text).toContain('TOKEN');
        expect(text).not.toContain('very-s3cret');
        expect(text).not.toContain(Buffer.from('very-s3cret').toString('base64'));
      }
      expect(within((await bench.get(bench.secretAt(wanted.name))) ?? {}, 'data')).toHaveProperty('TOKEN');
      await runtime.stop(wanted.name, 1000);
      expect(await bench.get(bench.secretAt(wanted.name))).toBeUndefined();
    });

    test('of another value are those of the next start', async () => {
      const runtime = await bench.open();
      const wanted = bench.spec({ secretEnv: { TOKEN: 'old' } });
      await runtime.create(wanted);
      await runtime.start(wanted.name, { TOKEN: 'old' });
      await runtime.stop(wanted.name, 1000);
      await runtime.start(wanted.name, { TOKEN: 'new' });
      const probe = new ProbeCaller(await runtime.attach(wanted.name));
      expect(await probe.call('probe/env', { name: 'TOKEN' })).toBe('new');
    });
  });
}

/** What carries the name and is not ours. */
function foreignContract(bench: ClusterBench): void {
  describe('objects of somebody else', () => {
    const foreign = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { labels: { app: 'theirs' } },
      data: { KEEP: 'aGVyZQ==' },
    };

    test('are never changed or removed, and there is no workload then', async () => {
      const runtime = await bench.open();
      const wanted = bench.spec({ name: 'theirs' });
      const made = { ...foreign, metadata: { ...foreign.metadata, name: 'mcp-theirs-env' } };
      await bench.under().call('POST', `api/v1/namespaces/${bench.under().namespace}/secrets`, made);
      await runtime.create(wanted);
      await expect(runtime.start('theirs', { TOKEN: 'mine' })).rejects.toMatchObject({
        code: 'runtime/name-taken',
        message: expect.stringContaining('Secret "mcp-theirs-env"'),
      });
      await runtime.remove('theirs');
      expect(within((await bench.get(bench.secretAt('theirs'))) ?? {}, 'data')).toEqual({ KEEP: 'aGVyZQ==' });
      await bench.under().call('DELETE', bench.secretAt('theirs'));
    });

    test('a StatefulSet of another Skep is neither taken, nor stopped, nor removed, and shows nothing as ours', async () => {
      const [ours, others] = [await bench.open(), await bench.open('ffffffffffffffff')];
      const wanted = bench.spec({ labels: { 'skep.managed': 'true', 'skep.state': 'x' } });
      await others.create(wanted);
      await others.start(wanted.name);
      await expect(ours.create(wanted)).rejects.toMatchObject({ code: 'runtime/name-taken' });
      await expect(ours.start(wanted.name)).rejects.toMatchObject({ code: 'runtime/no-such-workload' });
      expect(await ours.inspect(wanted.name)).toMatchObject({ labels: {} });
      expect(await ours.list()).toEqual([]);
      await ours.stop(wanted.name, 0);
      await ours.remove(wanted.name);
      expect(await others.inspect(wanted.name)).toMatchObject({ state: 'running' });
      await others.remove(wanted.name);
    });

    test('a Service in the way leaves nothing behind', async () => {
      const runtime = await bench.open();
      const wanted = bench.spec({
        stdio: false,
        ports: [{ hostIp: '127.0.0.1', hostPort: 0, containerPort: 8080 }],
      });
      const service = {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: `mcp-${wanted.name}` },
        spec: { ports: [{ port: 1 }], clusterIP: 'None' },
      };
      await bench.under().call('POST', `api/v1/namespaces/${bench.under().namespace}/services`, service);
      await expect(runtime.create(wanted)).rejects.toMatchObject({ code: 'runtime/name-taken' });
      expect(await bench.get(bench.setAt(wanted.name))).toBeUndefined();
      expect(await bench.get(bench.at('api/v1', 'services', `mcp-${wanted.name}-headless`))).toBeUndefined();
      await bench.under().call('DELETE', bench.at('api/v1', 'services', `mcp-${wanted.name}`));
    });
  });
}

/** Whoever else writes into a workload. */
function writersContract(bench: ClusterBench): void {
  describe('other writers', () => {
    test('what somebody writes into a workload is seen, and gone with the next description', async () => {
      const runtime = await bench.open();
      const wanted = bench.spec();
      await runtime.create(wanted);
      expect(await runtime.isCurrent(wanted.name)).toBe(true);
      const set = (await bench.get(bench.setAt(wanted.name))) ?? {};
      const [container] = within(set, 'spec', 'template', 'spec')['containers'] as readonly object[];
      const template = { spec: { containers: [{ ...container, image: 'evil:1' }] } };
      await bench.under().call('PATCH', bench.setAt(wanted.name), { spec: { template } });
      expect(await bench.imageOf(wanted.name)).toBe('evil:1');
      expect(await runtime.isCurrent(wanted.name)).toBe(false);
      await runtime.replace(wanted);
      expect(await bench.imageOf(wanted.name)).toBe('ghcr.io/acme/probe:1');
      expect(await runtime.isCurrent(wanted.name)).toBe(true);
    });

    test('an older run never overwrites, starts, stops or removes what a newer one has described', async () => {
      const [older, newer] = [await bench.open(), await bench.open()];
      const wanted = bench.spec();
      await older.create(wanted);
      await newer.replace({ ...wanted, reference: 'ghcr.io/acme/probe:2' });
      const superseded = { code: 'runtime/engine-refused', message: expect.stringContaining('later run') };
      for (const act of [
        () => older.replace(wanted),
        () => older.start(wanted.name),
        () => older.remove(wanted.name),
        () => older.wait(wanted.name, forever()),
      ]) {
        await expect(act()).rejects.toMatchObject(superseded);
      }
      expect(await bench.imageOf(wanted.name)).toBe('ghcr.io/acme/probe:2');
      await newer.start(wanted.name);
      await expect(older.stop(wanted.name, 0)).rejects.toMatchObject(superseded);
      expect(await newer.inspect(wanted.name)).toMatchObject({ state: 'running' });
    });

    test('descriptions at the same time leave one of them, whole', async () => {
      const runtime = await bench.open();
      const wanted = bench.spec();
      await runtime.create(wanted);
      const runs = await Promise.all([bench.open(), bench.open(), bench.open()]);
      const references = runs.map((_run, index) => `ghcr.io/acme/probe:${index}`);
      await Promise.allSettled(
        runs.map((run, index) => run.replace({ ...wanted, reference: references[index] ?? '' })),
      );
      const seen = await (await bench.open()).inspect(wanted.name);
      expect(references).toContain(seen?.reference);
      expect(await bench.imageOf(wanted.name)).toBe(seen?.reference);
    });

    test('a pod that somebody deletes is an end, and the next start another server', async () => {
      const runtime = await bench.open();
      const wanted = bench.spec();
      await runtime.create(wanted);
      await runtime.start(wanted.name);
      const waiting = runtime.wait(wanted.name, forever());
      await bench.under().call('DELETE', bench.at('api/v1', 'pods', `${wanted.name}-0`));
      expect(await waiting).toEqual(expect.any(Number));
      await runtime.start(wanted.name);
      const probe = new ProbeCaller(await runtime.attach(wanted.name));
      expect(await probe.call('ping')).toEqual({});
    });
  });
}

/** From asking for a pod to a ready one. */
function startingContract(bench: ClusterBench): void {
  describe('starting', () => {
    test('says so where the image cannot be fetched, and asks for no pod any more', async () => {
      const runtime = await bench.open();
      const { machine } = bench.under();
      const before = machine.image;
      machine.image = (reference) => (reference.includes('gone') ? undefined : before(reference));
      const wanted = bench.spec({ reference: 'ghcr.io/acme/gone:1' });
      await runtime.create(wanted);
      await expect(runtime.start(wanted.name, {})).rejects.toMatchObject({
        code: 'runtime/image-not-found',
        message: expect.stringContaining('ImagePullBackOff'),
      });
      expect(within((await bench.get(bench.setAt(wanted.name))) ?? {}, 'spec')['replicas']).toBe(0);
    });

    test('waits until the pod is ready', async () => {
      const runtime = await bench.open();
      const { machine } = bench.under();
      machine.ready = false;
      const wanted = bench.spec();
      await runtime.create(wanted);
      const { promise: waits, resolve } = Promise.withResolvers<void>();
      const starting = runtime.start(wanted.name, {}, (line) => line.includes('not ready') && resolve());
      await waits;
      machine.ready = true;
      await starting;
      expect(await runtime.inspect(wanted.name)).toMatchObject({ state: 'running' });
    });
  });
}

/** Ports. */
function httpContract(bench: ClusterBench): void {
  describe('servers that speak HTTP', () => {
    test('are reached on a port of this machine while somebody hosts them, through the API server', async () => {
      const behind = createServer((request, response) => response.end(`pod answers ${request.url ?? ''}`));
      behind.listen(0, '127.0.0.1');
      await once(behind, 'listening');
      const { machine } = bench.under();
      machine.ports.set(8080, (behind.address() as AddressInfo).port);
      const runtime = await bench.open();
      const hostPort = await choosePort({
        host: '127.0.0.1',
        promised: async () => new Map(),
        random: randomInt,
      });
      const wanted = bench.spec({
        stdio: false,
        ports: [{ hostIp: '127.0.0.1', hostPort, containerPort: 8080 }],
      });
      await runtime.create(wanted);
      await runtime.start(wanted.name);
      const hosting = runtime.wait(wanted.name, forever());
      const ask = () => fetch(`http://127.0.0.1:${hostPort}/mcp`).then((answer) => answer.text());
      await expect.poll(() => ask().catch(() => ''), { timeout: 10_000 }).toBe('pod answers /mcp');
      await runtime.stop(wanted.name, 1000);
      expect(await hosting).toBe(143);
      await expect(ask()).rejects.toThrow();
      behind.close();
      behind.closeAllConnections();
    });
  });
}

/** What cannot be meant in a cluster. */
function refusalsContract(bench: ClusterBench): void {
  test.each<[string, Partial<WorkloadSpec>, RegExp]>([
    ['a mount', { mounts: [{ source: '/tmp', target: '/data', readOnly: true }] }, /"\/data"/],
    ['data that is kept', { data: ['/var/lib/x'] }, /"\/var\/lib\/x"/],
    ['privileges', { privileged: true }, /privileged/],
    ['root', { user: 'root' }, /root/],
    ['the network of the machine', { network: 'host' }, /"host"/],
    ['a long name', { name: 'n'.repeat(51) }, /object of a cluster/],
    ['a name that is no object’s', { name: 'A_b' }, /object of a cluster/],
  ])('refuses %s in one line, with nothing made', async (_what, changes, message) => {
    const runtime = await bench.open();
    const wanted = { ...STDIO_SPEC, reference: 'ghcr.io/acme/probe:1', ...changes };
    await expect(runtime.create(wanted)).rejects.toMatchObject({
      code: 'runtime/invalid-workload',
      message: expect.stringMatching(message),
    });
    expect(await runtime.list()).toEqual([]);
  });
}
