import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { MemoryProcess } from '../packages/skep/src/runtime/doubles/program.ts';
import {
  chartFolder,
  committedObjects,
  EXAMPLES,
  manifestFile,
  manifestOf,
  valuesFile,
  type Manifest,
  type PodSpec,
} from '../scripts/deployment.ts';
import { freePort } from './fixtures/free-port.ts';
import { lintChart, renderChart } from './fixtures/helm.ts';
import { KubeApi } from './fixtures/kube-api.ts';
import { KubeMachine } from './fixtures/kube-machine.ts';
import { redisServer } from './fixtures/redis-server.ts';
import { begunAt, goingOn } from './fixtures/replica.ts';
import { sessionServer } from './fixtures/session-server.ts';
import { testAuthority } from './fixtures/test-authority.ts';
import { RegistryFolder } from './registry/process.ts';
import { component, title } from './require.ts';
import { ask, ended, openUser, type TestUser } from './skep.ts';

// The charts and manifests of deploy/: Helm renders them, a real API server takes them, and the programs start with what they
// say. scripts/manifests.test.ts holds what the committed manifests say, in every run.

const helm = await component('helm');
const kubernetes = await component('kubernetes');
const redis = await component('redis');

const releaseOf = (file: string, set: readonly string[] = []) => {
  const example = EXAMPLES.find((one) => one.file === file);
  if (example === undefined) throw new TypeError(file);
  const { chart, release: name, namespace } = example;
  return { example, chart: chartFolder(chart), name, namespace, values: [valuesFile(file)], set };
};

/** The process of a pod, as its manifest says it. */
function processOf(file: string, kind = 'Deployment'): { readonly pod: PodSpec; readonly config: string } {
  const objects = committedObjects(file);
  const pod = objects.find((one) => one.kind === kind)?.spec?.template?.spec;
  const config = Object.values(objects.find((one) => one.kind === 'ConfigMap')?.data ?? {})[0];
  if (pod === undefined || config === undefined) throw new TypeError(file);
  return { pod, config };
}

describe.skipIf(!helm.available)(title('the charts', helm), () => {
  test.each(EXAMPLES.map(({ file }) => file))(
    'of %s have nothing that lint finds, and make what is committed',
    async (file) => {
      const { example, ...release } = releaseOf(file);
      expect(await lintChart(release)).toContain('0 chart(s) failed');
      // When they differ: npm run build:manifests.
      expect(await readFile(manifestFile(file), 'utf8')).toBe(
        manifestOf(example, await renderChart(release)),
      );
    },
  );

  test.each([
    [
      'registry-anonymous',
      'replicas=2',
      'replicas: 2 need PostgreSQL: set database.host, or keep one replica',
    ],
    ['registry-anonymous', 'replica=2', "additional properties 'replica' not allowed"],
    ['registry-anonymous', 'replicas=0', "at '/replicas'"],
    [
      'registry-anonymous',
      'config.database.password=x',
      'config.database: set database beside config, not in it',
    ],
    ['registry-postgresql', 'database.password=x', "at '/database/password'"],
    ['registry-postgresql', 'database.password.secretName=', 'database.password.secretName: name the Secret'],
    [
      'registry-postgresql',
      'database.migration.password.secretName=',
      'database.migration.password.secretName: name the Secret',
    ],
    ['registry-postgresql', 'database.sslMode=yes', "at '/database/sslMode'"],
    [
      'proxy-image',
      'server.url=https://x.example/mcp',
      'server: set exactly one of server.image and server.url',
    ],
    ['proxy-image', 'server.image=', 'server: set exactly one of server.image and server.url'],
    ['proxy-image', 'config.host=127.0.0.1', 'config.host: the chart sets it'],
    ['proxy-image', 'secrets[0].value=x', "at '/secrets/0'"],
    ['proxy-url', 'server.transport=stdio', 'server.transport: a server elsewhere speaks'],
    [
      'proxy-url',
      'replicas=2',
      'replicas: 2 share the sessions of legacy clients in Redis: set redis.address',
    ],
    ['proxy-url', 'replicas=0', "at '/replicas'"],
    ['proxy-image', 'replicas=2', "replicas: a server of an image is its proxy's own"],
    ['proxy-image', 'redis.address=redis://r:1', "replicas: a server of an image is its proxy's own"],
    ['proxy-replicas', 'server.transport=sse', 'server.transport: sessions of HTTP with SSE end'],
    ['proxy-replicas', 'redis.address=redis://:hush@r:1', "at '/redis/address'"],
    ['proxy-replicas', 'redis.password=hush', "at '/redis/password'"],
    [
      'proxy-replicas',
      'config.scaling_config.backend_replicas=2',
      'config.scaling_config: the chart sets it',
    ],
    ['proxy-replicas', 'config.skep_ca_bundle=/x', 'config.skep_ca_bundle: redis.ca stands for it'],
  ])('refuse for %s %s', async (file, set, words) => {
    await expect(renderChart(releaseOf(file, [set]))).rejects.toThrow(words);
  });

  test('have no default of who may call', async () => {
    const bare = { ...releaseOf('registry-anonymous'), values: [] };
    await expect(renderChart(bare)).rejects.toThrow('config.auth: name who may call');
  });

  test('follow what the values say of networks, volumes and metrics', async () => {
    const quiet = await renderChart(
      releaseOf('registry-anonymous', ['networkPolicy.enabled=false', 'storage.existingClaim=mine']),
    );
    expect(quiet).not.toMatch(
      /kind: (?:NetworkPolicy|PersistentVolumeClaim|PodDisruptionBudget|Job|ServiceMonitor)\n/,
    );
    expect(quiet).toContain('claimName: mine');
    const everywhere = ['config.sources[0].name=all', 'config.sources[0].kubernetes.kinds[0]=Service'];
    expect(await renderChart(releaseOf('registry-anonymous', everywhere))).toContain(
      'kind: ClusterRoleBinding',
    );
    const modern = await renderChart(releaseOf('proxy-url', ['replicas=3', 'modernClientsOnly=true']));
    expect(modern).toMatch(/replicas: 3\n[\s\S]*type: RollingUpdate/);
    expect(modern).not.toContain('session_redis');
    const web = await renderChart(
      releaseOf('proxy-image', ['server.transport=sse', 'server.targetPort=9000']),
    );
    expect(web).toContain('"target_port": 9000');
  });
});

describe.skipIf(!kubernetes.available)(title('manifests on a real API server', kubernetes), () => {
  let api: KubeApi;
  beforeAll(async () => {
    api = await KubeApi.start();
    for (const name of ['skep', 'mcp'])
      await api.call('POST', 'api/v1/namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name },
      });
    await api.call('POST', 'apis/apiextensions.k8s.io/v1/customresourcedefinitions', MONITORS);
    await vi.waitUntil(
      async () =>
        (await api.call('GET', pathOf('ServiceMonitor', 'skep'), undefined, [404, 429])).status === 200,
      {
        timeout: 60_000,
        interval: 50,
      },
    );
  }, 120_000);
  afterAll(() => api.close());

  /** What it does not know, or takes for something else, is refused and not dropped. */
  async function apply(object: Manifest, more = ''): Promise<void> {
    const { kind, metadata } = object;
    const at = `${pathOf(kind, metadata.namespace)}/${metadata.name}`;
    await api.call('PATCH', `${at}?fieldManager=test&force=true&fieldValidation=Strict${more}`, object);
  }

  test.each(EXAMPLES.map(({ file }) => file))(
    '%s is taken whole, and a pod that its namespace restricts',
    async (file) => {
      const objects = committedObjects(file);
      for (const object of objects) await apply(object);
      const misspelt = { ...objects.find(({ kind }) => kind === 'Deployment'), spec: { replica: 1 } };
      await expect(apply(misspelt as unknown as Manifest, '&dryRun=All')).rejects.toThrow('replica');
      const namespace = EXAMPLES.find((one) => one.file === file)?.namespace ?? '';
      const label = { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } };
      await api.call('PATCH', `api/v1/namespaces/${namespace}`, label);
      for (const { spec } of objects) {
        if (spec?.template === undefined) continue;
        const metadata = { name: `as-${randomBytes(3).toString('hex')}`, namespace };
        const { containers } = spec.template.spec;
        const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...spec.template.spec, containers } };
        await api.call('POST', `api/v1/namespaces/${namespace}/pods?dryRun=All`, pod);
        const open = {
          ...pod,
          spec: { ...pod.spec, containers: containers.map((one) => ({ ...one, securityContext: {} })) },
        };
        const refused = await api.call('POST', `api/v1/namespaces/${namespace}/pods?dryRun=All`, open, [403]);
        expect(JSON.stringify(refused.body)).toContain('violates PodSecurity');
      }
    },
  );

  test('the proxy of an image runs its server with the rights, words and variables of its manifest, and takes it along', async () => {
    for (const object of committedObjects('proxy-image')) await apply(object);
    const node = await KubeMachine.start(api, 'mcp', tokenProgram);
    const { pod, config } = processOf('proxy-image');
    const user = openUser();
    onTestFinished(async () => {
      await user.end();
      await node.close();
    });
    const port = await freePort();
    const file = path.join(user.dir, 'server.json');
    await writeFile(file, config.replace('"port": 8080', `"port": ${port}`));
    const account = 'api/v1/namespaces/mcp/serviceaccounts/notes-proxy/token';
    const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const { body } = await api.call('POST', account, asked);
    const kubeconfig = path.join(user.dir, 'kubeconfig.json');
    await api.writeKubeconfig({ token: (body as { status: { token: string } }).status.token }, kubeconfig);
    const [container] = pod.containers;
    const given = (container?.env ?? []).map(({ name, value = 's3cret' }) => [name, value] as const);
    const env = {
      ...Object.fromEntries(given),
      XDG_STATE_HOME: path.join(user.dir, 'state'),
      KUBECONFIG: kubeconfig,
      SKEP_KUBE_NAMESPACE: 'mcp',
    };
    const words = (container?.args ?? []).map((word) => word.replace('/etc/skep/server.json', file));
    const proxy = user.start(words, { env });
    const over = ended(proxy);
    const url = `http://127.0.0.1:${port}`;
    const probe = container?.readinessProbe?.httpGet?.path ?? '';
    await vi.waitUntil(async () => proxy.exitCode !== null || (await statusOf(url + probe)) === 200, {
      timeout: 90_000,
      interval: 100,
    });
    expect(await ask(`${url}/mcp`, 'tools/call', { name: 'token', arguments: {} })).toMatchObject({
      result: { content: [{ text: 's3cret' }] },
    });
    // By the name of its Service, as clients in the cluster call it.
    expect(await statusOf(`${url}/health`, 'notes-proxy.mcp.svc:8080')).toBe(200);
    expect(await statusOf(`${url}/health`, 'elsewhere.example:8080')).toBe(403);
    proxy.kill('SIGTERM');
    expect(await over).toMatchObject({ code: 0 });
    const sets = await api.call('GET', 'apis/apps/v1/namespaces/mcp/statefulsets');
    expect((sets.body as { items: unknown[] }).items).toEqual([]);
  });
});

test('the registry starts with the words and ConfigMap of its manifest, and its probes answer', async () => {
  const { pod, config } = processOf('registry-anonymous');
  const [container] = pod.containers;
  const folder = await RegistryFolder.create({ SKEP_REGISTRY_STORAGE_PATH: ':memory:' });
  onTestFinished(() => folder.remove());
  const file = await folder.write('registry.yaml', config);
  const [address, internal] = [await freePort(), await freePort()];
  const words = (container?.args ?? []).map((word) =>
    word
      .replace(/=\/etc.*/, `=${file}`)
      .replace('=:8080', `=:${address}`)
      .replace('=:8081', `=:${internal}`),
  );
  expect(words).toContain(`--internal-address=:${internal}`);
  const running = folder.run(...words);
  for (const probe of [container?.startupProbe, container?.livenessProbe, container?.readinessProbe]) {
    const url = `http://127.0.0.1:${internal}${probe?.httpGet?.path}`;
    await vi.waitUntil(async () => (await statusOf(url)) === 200, { timeout: 60_000, interval: 50 });
  }
  const list = `http://127.0.0.1:${address}/registry/default/v0.1/servers`;
  expect(await statusOf(list, 'skep-registry.skep.svc')).toBe(200);
  expect(await statusOf(list, 'elsewhere.example')).toBe(403);
  expect(await statusOf(`http://127.0.0.1:${address}/readiness`)).toBe(404);
  await folder.remove();
  await running.catch(() => {});
});

describe.skipIf(!redis.available)(title('replicas of the manifest of a proxy', redis), () => {
  test('start with its words, ConfigMap and Secret, and serve one session while either is killed', async () => {
    const { pod, config } = processOf('proxy-replicas');
    const root = await mkdtemp(path.join(tmpdir(), 'skep-deploy-'));
    const certificate = testAuthority(path.join(root, 'authority')).issue('redis', { for: ['IP:127.0.0.1'] });
    const [server, store] = await Promise.all([
      sessionServer(['search', 'hidden']),
      redisServer({ certificate }),
    ]);
    const users: TestUser[] = [];
    onTestFinished(async () => {
      await store[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await Promise.all(users.map((user) => user.end()));
      await rm(root, { recursive: true });
    });
    const [container] = pod.containers;
    /** What a volume of the pod holds, as a file of the test. */
    const mounted = async (user: TestUser, file: string, text: string): Promise<string> => {
      const isMounted = container?.volumeMounts?.some(({ mountPath }) => file.startsWith(`${mountPath}/`));
      expect(isMounted, file).toBe(true);
      const here = path.join(user.dir, path.basename(file));
      await writeFile(here, text);
      return here;
    };
    async function replica() {
      const user = openUser();
      users.push(user);
      const port = await freePort();
      const said = JSON.parse(config);
      const sharing = said.scaling_config.session_redis;
      const bundle = await readFile(path.join(certificate, 'ca.pem'), 'utf8');
      const own = {
        ...said,
        port,
        // What is an example in the manifest.
        remote_url: server.url,
        oidc_config: undefined,
        skep_ca_bundle: await mounted(user, said.skep_ca_bundle, bundle),
        scaling_config: {
          session_redis: {
            ...sharing,
            address: store.address,
            password_file: await mounted(user, sharing.password_file, `${store.password}\n`),
          },
        },
      };
      const file = path.join(user.dir, 'server.json');
      await writeFile(file, JSON.stringify(own));
      const words = (container?.args ?? []).map((word) => word.replace('/etc/skep/server.json', file));
      const child = user.start(words);
      const health = `http://127.0.0.1:${port}${container?.readinessProbe?.httpGet?.path}`;
      await vi.waitUntil(async () => (await statusOf(health)) === 200, { timeout: 60_000, interval: 50 });
      return { child, url: `http://127.0.0.1:${port}/mcp` };
    }
    const [a, b] = [await replica(), await replica()];
    const session = await begunAt(a, { tool: 'search' });
    const atB = await goingOn(b.url, session);
    expect((await atB.listTools()).tools.map(({ name }) => name)).toEqual(['search']);
    const gone = ended(a.child);
    a.child.kill('SIGKILL');
    await gone;
    expect(await atB.callTool({ name: 'search' })).toMatchObject({ content: [{ text: 'search' }] });
    await atB.close();
  }, 120_000);
});

/** Of an address, called by that name; undefined while nothing answers. */
function statusOf(url: string, host = new URL(url).host): Promise<number | undefined> {
  return new Promise((resolve) => {
    http
      .get(url, { headers: { host }, agent: false }, (response) => {
        response.resume().once('close', () => resolve(response.statusCode));
      })
      .once('error', () => resolve(undefined));
  });
}

/** Where objects of a kind are; those of the whole cluster have no namespace. */
function pathOf(kind: string, namespace: string | undefined): string {
  const group = GROUPS[kind];
  if (group === undefined) throw new TypeError(kind);
  const plural = kind === 'NetworkPolicy' ? 'networkpolicies' : `${kind.toLowerCase()}s`;
  return namespace === undefined ? `${group}/${plural}` : `${group}/namespaces/${namespace}/${plural}`;
}

const RBAC = 'apis/rbac.authorization.k8s.io/v1';
const GROUPS: Readonly<Record<string, string>> = {
  ServiceAccount: 'api/v1',
  ConfigMap: 'api/v1',
  Service: 'api/v1',
  PersistentVolumeClaim: 'api/v1',
  Deployment: 'apis/apps/v1',
  Job: 'apis/batch/v1',
  NetworkPolicy: 'apis/networking.k8s.io/v1',
  PodDisruptionBudget: 'apis/policy/v1',
  Role: RBAC,
  RoleBinding: RBAC,
  ClusterRole: RBAC,
  ClusterRoleBinding: RBAC,
  ServiceMonitor: 'apis/monitoring.coreos.com/v1',
};

/** As much of the Prometheus operator's kind as decides whether one is taken. */
const MONITORS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'servicemonitors.monitoring.coreos.com',
    annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
  },
  spec: {
    group: 'monitoring.coreos.com',
    scope: 'Namespaced',
    names: {
      kind: 'ServiceMonitor',
      plural: 'servicemonitors',
      singular: 'servicemonitor',
      listKind: 'ServiceMonitorList',
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['endpoints', 'selector'],
                properties: {
                  selector: {
                    type: 'object',
                    properties: { matchLabels: { type: 'object', additionalProperties: { type: 'string' } } },
                  },
                  endpoints: {
                    type: 'array',
                    items: {
                      type: 'object',
                      properties: Object.fromEntries(
                        ['port', 'path', 'interval'].map((name) => [name, { type: 'string' }]),
                      ),
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

/** A server with one tool, which tells the token that the server was given. */
function tokenProgram(server: MemoryProcess): void {
  createInterface({ input: server.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line) as {
      readonly id?: number;
      readonly method: string;
      readonly params?: { readonly protocolVersion?: string };
    };
    if (id === undefined) return;
    const results: Readonly<Record<string, object>> = {
      initialize: {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'notes', version: '1' },
      },
      'tools/list': { tools: [{ name: 'token', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: server.env['TOKEN'] ?? '' }] },
    };
    server.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} })}\n`);
  });
}
