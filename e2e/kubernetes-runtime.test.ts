import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isRecord } from '../packages/core/src/json/is-record.ts';
import { probeProgram } from '../packages/skep/src/runtime/doubles/probe-program.ts';
import type { MemoryProcess } from '../packages/skep/src/runtime/doubles/program.ts';
import { runtimeContract } from '../packages/skep/src/runtime/contract.ts';
import { clusterContract } from '../packages/skep/src/runtime/kubernetes/contract.ts';
import { within } from '../packages/skep/src/runtime/kubernetes/pod-life.ts';
import { openTestRuntime } from '../packages/skep/src/runtime/kubernetes/open-runtime.fixture.ts';
import { KubeApi } from './fixtures/kube-api.ts';
import { KubeMachine } from './fixtures/kube-machine.ts';
import { blocksOf } from './page-blocks.ts';
import { component, title } from './require.ts';
import { ended, openUser, printed, type TestUser } from './skep.ts';

// A real API server: schemas, validation, server-side apply, conflicts, rights and the way to a kubelet are its own. There is no
// kubelet and no controller: this process makes the pods of StatefulSets, runs their servers, and speaks for the node.

const kubernetes = await component('kubernetes');

describe.skipIf(!kubernetes.available)(title('the runtime on a real API server', kubernetes), () => {
  let api: KubeApi;
  let node: KubeMachine;
  beforeAll(async () => {
    api = await KubeApi.start();
    node = await KubeMachine.start(api, 'one', probeProgram);
  }, 120_000);
  afterAll(async () => {
    await node.close();
    await api.close();
  });

  const open = (owner?: string) =>
    openTestRuntime({ KUBECONFIG: api.kubeconfig, SKEP_KUBE_NAMESPACE: 'one' }, owner);

  async function objects(): Promise<readonly string[]> {
    const kinds = [
      'apis/apps/v1/namespaces/one/statefulsets',
      'apis/networking.k8s.io/v1/namespaces/one/networkpolicies',
      'api/v1/namespaces/one/services',
      'api/v1/namespaces/one/secrets',
      'api/v1/namespaces/one/pods',
    ];
    const listed = await Promise.all(kinds.map((at) => api.call('GET', at)));
    return listed.flatMap(({ body }) =>
      (body as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name),
    );
  }

  describe('contract', () => {
    runtimeContract({
      open,
      probeServer: async () => 'ghcr.io/acme/probe:1',
      missing: {
        source: { kind: 'package', ecosystem: 'npm', name: 'gone' },
        code: 'runtime/invalid-workload',
      },
      hold: undefined,
      lacks: ['local-images', 'logs-of-stopped'],
      leftovers: objects,
      close: async () => {},
    });
  });

  clusterContract(() => ({
    open,
    call: async (method, path, body) => {
      const { status, body: value } = await api.call(method, path, body, [404]);
      return status < 300 && isRecord(value) ? value : undefined;
    },
    machine: node.machine,
    namespace: 'one',
  }));

  describe('the command line', () => {
    const IMAGE = 'ghcr.io/acme/tool:1';
    let user: TestUser;
    const web = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk) => (text += String(chunk)));
      request.on('end', () => {
        const reply = text === '' ? undefined : replyTo(text, () => 'over HTTP');
        response
          .writeHead(reply === undefined ? 202 : 200, { 'content-type': 'application/json' })
          .end(reply);
      });
    });
    beforeAll(async () => {
      web.listen(0, '127.0.0.1');
      await once(web, 'listening');
      node.machine.ports.set(8080, (web.address() as AddressInfo).port);
    });
    afterAll(() => {
      web.close();
      web.closeAllConnections();
    });
    beforeEach(() => {
      node.machine.image = (reference) => (reference === IMAGE ? mcpProgram : probeProgram);
      user = openUser({ KUBECONFIG: api.kubeconfig, SKEP_KUBE_NAMESPACE: 'one', SKEP_RUNTIME: 'kubernetes' });
    });
    afterEach(async () => {
      await user.end();
      expect(await objects()).toEqual([]);
    });

    test('runs, lists, asks, stops, starts and removes a server that speaks over stdio', async () => {
      const run = await user.skep(['run', IMAGE, '--name', 'cli', '-e', 'GREETING=hello', '--', '--flag=x']);
      expect(run).toMatchObject({ code: 0 });
      expect(run.stderr).toContain('NetworkPolicy');
      expect((await user.skep(['list'])).stdout).toMatch(/cli .*running/);
      expect((await user.skep(['mcp', 'call', 'cli', 'where'])).stdout).toContain('hello --flag=x');
      expect(await user.skep(['stop', 'cli'])).toMatchObject({ code: 0 });
      expect((await user.skep(['list', '--all'])).stdout).toMatch(/cli .*stopped/);
      expect(await user.skep(['start', 'cli'])).toMatchObject({ code: 0 });
      expect((await user.skep(['mcp', 'call', 'cli', 'where'])).stdout).toContain('hello --flag=x');
      expect((await user.skep(['logs', 'cli'])).stdout).toContain('tool ready');
      expect(await user.skep(['rm', 'cli'])).toMatchObject({ code: 0 });
      expect(await objects()).toEqual([]);
    });

    test('a server that crashes is restarted, and its next caller answered', async () => {
      expect(await user.skep(['run', IMAGE, '--name', 'frail'])).toMatchObject({ code: 0 });
      const first = await api.call('GET', 'api/v1/namespaces/one/pods/frail-0');
      await user.skep(['mcp', 'call', 'frail', 'crash']);
      await expect
        .poll(async () => (await user.skep(['mcp', 'call', 'frail', 'where'])).code, { timeout: 60_000 })
        .toBe(0);
      const second = await api.call('GET', 'api/v1/namespaces/one/pods/frail-0');
      expect(within(second.body as Members, 'metadata')['uid']).not.toBe(
        within(first.body as Members, 'metadata')['uid'],
      );
    });

    test('one that runs is taken up by the next supervisor', async () => {
      expect(await user.skep(['run', IMAGE, '--name', 'kept'])).toMatchObject({ code: 0 });
      const before = await api.call('GET', 'api/v1/namespaces/one/pods/kept-0');
      await user.killSupervisor();
      expect((await user.skep(['mcp', 'call', 'kept', 'where'])).code).toBe(0);
      const after = await api.call('GET', 'api/v1/namespaces/one/pods/kept-0');
      expect(within(after.body as Members, 'metadata')['uid']).toBe(
        within(before.body as Members, 'metadata')['uid'],
      );
    });

    test('a secret is in a Secret alone', async () => {
      const run = await user.skep(['run', IMAGE, '--name', 'cli', '--secret', 'TOKEN,target=TOKEN'], {
        env: {
          SKEP_SECRETS_PROVIDER: 'environment',
          SKEP_SECRET_TOKEN: 'very-s3cret',
          TOOLHIVE_SECRET_TOKEN: '',
        },
      });
      expect(run).toMatchObject({ code: 0 });
      expect((await user.skep(['mcp', 'call', 'cli', 'token'])).stdout).toContain('very-s3cret');
      const set = JSON.stringify(
        (await api.call('GET', 'apis/apps/v1/namespaces/one/statefulsets/cli')).body,
      );
      expect(set).toContain('secretKeyRef');
      expect(set).not.toContain('very-s3cret');
    });

    test('a server in the foreground is removed with Ctrl-C', async () => {
      const child = user.start(['run', IMAGE, '--name', 'fore', '--foreground']);
      const finished = ended(child);
      await printed(child, 'Press Ctrl-C');
      child.kill('SIGINT');
      await finished;
      expect(await objects()).toEqual([]);
    });

    test.each([
      ['a package', ['npx://left-pad'], 'a cluster runs images alone'],
      ['a mount', [IMAGE, '-v', '/tmp:/data'], '"/data"'],
      [
        'a profile of hosts',
        [IMAGE, '--isolate-network', '--permission-profile', 'hosts.json'],
        '"api.example.com"',
      ],
      ['a long name', [IMAGE, '--name', 'n'.repeat(60)], 'no object of a cluster'],
      ['an image whose signer is asked for', [IMAGE, '--image-verification', 'enabled'], 'provenance'],
    ])('%s is refused in one line, with nothing made', async (_what, args, words) => {
      const profile = { network: { outbound: { allow_host: ['api.example.com'], allow_port: [443] } } };
      await writeFile(`${user.dir}/hosts.json`, JSON.stringify(profile));
      const run = await user.skep(['run', ...args]);
      expect(run.code).toBe(1);
      expect(run.stderr).toMatch(/^(?:(?:Warning: |Starting ).*\n)*Error: .*; .*\n$/);
      expect(run.stderr).toContain(words);
      expect(await objects()).toEqual([]);
    });

    /** Signs in as the service account `default` of the namespace. */
    async function asAccount(): Promise<Readonly<Record<string, string>>> {
      const file = `${user.dir}/kubeconfig.json`;
      const at = 'api/v1/namespaces/one/serviceaccounts/default/token';
      const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
      const { body } = await api.call('POST', at, asked);
      await api.writeKubeconfig({ token: within(body as Members, 'status')['token'] }, file);
      return { KUBECONFIG: file };
    }

    test('the rights of the guide are enough for everything', async () => {
      const block = await blocksOf('docs/guide/run-in-a-cluster.md');
      const roles = 'apis/rbac.authorization.k8s.io/v1/namespaces/one';
      const role = block('yaml', 'kind: Role').replace('namespace: tools', 'namespace: one');
      await api.apply(`${roles}/roles/skep-run`, role);
      await api.call('POST', `${roles}/rolebindings`, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'skep-run' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'skep-run' },
        subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: 'one' }],
      });
      const secret = { SKEP_SECRETS_PROVIDER: 'environment', SKEP_SECRET_TOKEN: 'very-s3cret' };
      const env = { ...(await asAccount()), ...secret };
      const skep = async (...args: readonly string[]): Promise<string> => {
        const { code, stdout, stderr } = await user.skep(args, { env });
        expect(stderr).not.toContain('Error');
        expect(code).toBe(0);
        return stdout;
      };
      await skep('run', IMAGE, '--name', 'guided', '--secret', 'TOKEN,target=TOKEN');
      expect(await skep('mcp', 'call', 'guided', 'token')).toContain('very-s3cret');
      expect(await skep('logs', 'guided')).toContain('tool ready');
      await skep('stop', 'guided');
      await skep('rm', 'guided');
      await skep('run', IMAGE, '--name', 'web', '--transport', 'streamable-http', '--target-port', '8080');
      expect(await skep('mcp', 'call', 'web', 'where')).toContain('over HTTP');
      await skep('rm', 'web');
      await api.call('DELETE', `${roles}/rolebindings/skep-run`);
      await api.call('DELETE', `${roles}/roles/skep-run`);
    }, 120_000);

    test('a right that is missing is named before anything is made', async () => {
      const run = await user.skep(['run', IMAGE, '--name', 'cli'], { env: await asAccount() });
      expect(run).toMatchObject({ code: 1, stdout: '' });
      expect(run.stderr).toMatch(
        /may not (\w+) (\w+) .*in the namespace "one".*; give it a Role with the verb "\1" for "\2"\n$/,
      );
    });
  });
});

type Members = Readonly<Record<string, unknown>>;

const TOOLS = ['where', 'token', 'crash'].map((name) => ({ name, inputSchema: { type: 'object' } }));

/** What a small MCP server answers to a message; undefined for a notification. */
function replyTo(text: string, call: (tool: unknown) => string): string | undefined {
  const { id, method, params = {} } = JSON.parse(text) as { id?: number; method: string; params?: Members };
  if (id === undefined) return undefined;
  const results: Readonly<Record<string, () => object>> = {
    initialize: () => ({
      protocolVersion: params['protocolVersion'],
      capabilities: { tools: {} },
      serverInfo: { name: 'tool', version: '1' },
    }),
    'tools/list': () => ({ tools: TOOLS }),
    ping: () => ({}),
    'tools/call': () => ({ content: [{ type: 'text', text: call(params['name']) }] }),
  };
  const result = results[method]?.();
  const reply = result === undefined ? { error: { code: -32_601, message: method } } : { result };
  return JSON.stringify({ jsonrpc: '2.0', id, ...reply });
}

/** The same over stdio; it crashes where it is asked to. */
function mcpProgram(server: MemoryProcess): void {
  const { env, args } = server;
  server.warn('tool ready\n');
  createInterface({ input: server.stdin }).on('line', (line) => {
    if (line.includes('"crash"')) return server.exit(3);
    const reply = replyTo(line, (tool) =>
      tool === 'token' ? (env['TOKEN'] ?? '') : `${env['GREETING'] ?? ''} ${args.join(' ')}`,
    );
    if (reply !== undefined) server.write(`${reply}\n`);
  });
}
