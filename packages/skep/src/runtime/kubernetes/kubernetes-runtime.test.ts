import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { runtimeContract } from '../contract.ts';
import { probeProgram } from '../doubles/probe-program.ts';
import { STDIO_SPEC } from '../doubles/stdio-spec.ts';
import type { Runtime } from '../runtime.ts';
import { failure, FakeCluster, sendJson } from './api-server.fixture.ts';
import { clusterContract } from './contract.ts';
import { openTestRuntime } from './open-runtime.fixture.ts';

describe('the runtime on a cluster', () => {
  let cluster: FakeCluster;
  beforeAll(async () => {
    cluster = await FakeCluster.start(probeProgram);
  });
  afterEach(() => {
    cluster.intercept = () => false;
  });
  afterAll(() => cluster.close());
  const open = (owner?: string): Promise<Runtime> =>
    openTestRuntime({ KUBECONFIG: cluster.kubeconfig }, owner);

  runtimeContract({
    open,
    probeServer: async () => 'ghcr.io/acme/probe:1',
    missing: {
      source: { kind: 'package', ecosystem: 'npm', name: 'gone' },
      code: 'runtime/invalid-workload',
    },
    hold: undefined,
    lacks: ['local-images', 'logs-of-stopped'],
    leftovers: async () => cluster.paths(),
    close: async () => {},
  });

  clusterContract(() => ({
    open,
    call: async (method, path, body = {}) => {
      if (method === 'GET') return cluster.object(`/${path}`);
      return cluster.write(method, `/${path}`, body);
    },
    machine: cluster.machine,
    namespace: 'tools',
  }));

  describe('an API server that refuses or lies', () => {
    test.each([
      [401, 'Unauthorized', 'runtime/engine-refused', /does not accept who asks.*: Unauthorized/],
      [403, 'no', 'runtime/engine-refused', /may not list statefulsets in the namespace "tools"/],
      [500, 'etcd', 'runtime/engine-unreachable', /does not answer/],
      [429, 'slow down', 'runtime/engine-unreachable', /does not answer/],
      [418, 'tea', 'runtime/engine-refused', /418/],
    ])('%s is one line before anything is made', async (status, words, code, message) => {
      const runtime = await open();
      cluster.intercept = (url, _request, response) => {
        if (url.pathname === '/version') return false;
        sendJson(response, status, failure(status, words).value);
        return true;
      };
      await expect(runtime.probe(AbortSignal.timeout(10_000))).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
    });

    test('a right that is missing is named: verb, resource and what to give', async () => {
      const runtime = await open();
      cluster.intercept = (url, request, response) => {
        if (request.method !== 'PATCH' || !url.pathname.includes('networkpolicies')) return false;
        sendJson(response, 403, failure(403, 'forbidden').value);
        return true;
      };
      await expect(runtime.create({ ...STDIO_SPEC, reference: 'a:1' })).rejects.toMatchObject({
        code: 'runtime/engine-refused',
        message: expect.stringContaining('patch networkpolicies "mcp-a1" in the namespace "tools"'),
        hint: 'give it a Role with the verb "patch" for "networkpolicies"',
      });
      expect(cluster.paths()).toEqual([]);
    });

    test('who may not attach hears so at once', async () => {
      const runtime = await open();
      await runtime.create({ ...STDIO_SPEC, reference: 'a:1' });
      await runtime.start('a1');
      const upgrade = cluster.machine.upgrade.bind(cluster.machine);
      cluster.machine.upgrade = (_request, socket) => {
        socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
      };
      await expect(runtime.attach('a1')).rejects.toMatchObject({
        code: 'runtime/engine-refused',
        message: expect.stringContaining('create pods/attach "a1-0"'),
      });
      cluster.machine.upgrade = upgrade;
      await runtime.remove('a1');
    });

    test('a kubelet that does not know the pod yet is asked again', async () => {
      const runtime = await open();
      await runtime.create({ ...STDIO_SPEC, reference: 'a:1' });
      await runtime.start('a1');
      const upgrade = cluster.machine.upgrade.bind(cluster.machine);
      let refusals = 2;
      cluster.machine.upgrade = (request, socket) => {
        refusals -= 1;
        if (refusals < 0) upgrade(request, socket);
        else socket.end('HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n');
      };
      const attached = await runtime.attach('a1');
      attached.stdin.write('{"id":1,"method":"ping"}\n');
      const [answer] = (await attached.stdout.iterator({ destroyOnReturn: false }).next()).value
        .toString()
        .split('\n');
      expect(JSON.parse(answer)).toMatchObject({ id: 1, result: {} });
      attached.close();
      cluster.machine.upgrade = upgrade;
      await runtime.remove('a1');
    });

    test.each([
      ['text', 'no JSON at all'],
      ['a list', '[]'],
      ['nothing', ''],
    ])('what answers %s is no API server', async (_what, body) => {
      const runtime = await open();
      cluster.intercept = (_url, _request, response) => {
        response.writeHead(200).end(body);
        return true;
      };
      await expect(runtime.probe(AbortSignal.timeout(10_000))).rejects.toMatchObject({
        code: 'runtime/engine-refused',
        hint: expect.stringContaining('Kubernetes API server'),
      });
    });

    test('one that is away is said to be', async () => {
      const gone = await FakeCluster.start(probeProgram);
      const runtime = await openTestRuntime({ KUBECONFIG: gone.kubeconfig });
      await gone.close();
      await expect(runtime.inspect('a1')).rejects.toMatchObject({
        code: expect.stringMatching(/^runtime\//),
      });
    });
  });
});
