import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EgressPolicy } from '../../egress/policy.ts';
import { STDIO_SPEC } from '../doubles/stdio-spec.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { plannedObjects, verbatim, type Manifest, type PlanOptions } from './objects.ts';
import { expanded } from './pod-machine.fixture.ts';
import { within } from './pod-life.ts';

const OPTIONS: PlanOptions = { owner: 'a1b2', generation: 7, isOpenShift: false };

function planned(
  changes: Partial<WorkloadSpec> = {},
  options: Partial<PlanOptions> = {},
): readonly Manifest[] {
  return plannedObjects({ ...STDIO_SPEC, ...changes }, { ...OPTIONS, ...options });
}

function podOf([set]: readonly Manifest[]) {
  const template = within({ ...set }, 'spec', 'template');
  const [container] = within(template, 'spec')['containers'] as readonly Record<string, unknown>[];
  return { template, spec: within(template, 'spec'), container: container ?? {} };
}

const egressOf = (objects: readonly Manifest[]) =>
  objects.find(({ kind }) => kind === 'NetworkPolicy')?.spec?.['egress'];

const port = (containerPort: number) => ({ hostIp: '127.0.0.1', hostPort: 40_000, containerPort });

describe('the objects of a workload', () => {
  test('are a StatefulSet without a replica and a policy, and Services where it has ports', () => {
    expect(planned().map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'StatefulSet a1',
      'NetworkPolicy mcp-a1',
    ]);
    const http = planned({ stdio: false, ports: [port(8080), port(8080), port(9090)] });
    expect(http.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'StatefulSet a1',
      'NetworkPolicy mcp-a1',
      'Service mcp-a1-headless',
      'Service mcp-a1',
    ]);
    expect(http[0]?.spec).toMatchObject({ replicas: 0, serviceName: 'mcp-a1-headless' });
    expect(http[2]?.spec).toMatchObject({ clusterIP: 'None', ports: [{ port: 8080 }, { port: 9090 }] });
    expect(http[3]?.spec).toMatchObject({
      type: 'ClusterIP',
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 1800 } },
    });
  });

  test('hold the pod as hard as a cluster can', () => {
    const { spec, container } = podOf(planned());
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        runAsGroup: 1000,
        fsGroup: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    expect(container).toMatchObject({
      name: 'mcp',
      stdin: true,
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        runAsUser: 1000,
        capabilities: { drop: ['ALL'] },
      },
    });
    expect(podOf(planned({ stdio: false })).container['stdin']).toBe(false);
  });

  test('name no user on OpenShift, which chooses one', () => {
    const text = JSON.stringify(planned({}, { isOpenShift: true }));
    expect(text).not.toMatch(/runAsUser|runAsGroup|fsGroup/);
    expect(text).toContain('"runAsNonRoot":true');
  });

  test('take the user of a person, and not the one that was chosen for files of this machine', () => {
    const user = (changes: Partial<WorkloadSpec>) =>
      within(podOf(planned(changes)).spec, 'securityContext')['runAsUser'];
    expect(user({ user: '1234:99' })).toBe(1234);
    expect(user({ user: '1234:99', insteadOfRoot: true })).toBe(1000);
  });

  test('say variables by name, and where the secret ones are, never what those hold', () => {
    const secretEnv = { TOKEN: 's3cret-value', B: 'shadowed-secret' };
    const objects = planned({ env: { C: '$(A)', B: '1' }, secretEnv });
    expect(podOf(objects).container['env']).toEqual([
      { name: 'B', value: '1' },
      { name: 'C', value: '$$(A)' },
      { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'mcp-a1-env', key: 'TOKEN' } } },
    ]);
    expect(JSON.stringify(objects)).not.toMatch(/s3cret|shadowed/);
  });

  test('no value of a secret variable is in them, whatever it is', () => {
    const value = fc.string({ minLength: 8 }).map((text) => `<${text}>`);
    fc.assert(
      fc.property(fc.dictionary(fc.stringMatching(/^[A-Z]{1,8}$/), value), (secretEnv) => {
        const text = JSON.stringify(planned({ secretEnv }));
        return Object.values(secretEnv).every((one) => !text.includes(JSON.stringify(one).slice(1, -1)));
      }),
    );
  });

  test('labels of a person stay in the annotation as they are, and become labels where a cluster can have them', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), (labels) => {
        const [set] = planned({ labels });
        const shown = (set?.metadata['labels'] ?? {}) as Record<string, string>;
        const kept: unknown = JSON.parse(
          String(within({ ...set }, 'metadata', 'annotations')['skep.dev/labels']),
        );
        expect(kept).toEqual(JSON.parse(JSON.stringify(labels)));
        for (const [key, one] of Object.entries(shown)) {
          expect(key).toMatch(/^(?:[a-z0-9.-]{1,253}\/)?[A-Za-z0-9][\w.-]{0,62}$/);
          expect(one).toMatch(/^(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/);
        }
        expect(shown).toMatchObject({ app: 'a1', 'skep.dev/managed': 'true', 'skep.dev/state': 'a1b2' });
      }),
    );
  });

  test('labels of a person neither steer the cluster nor reach the pod, where others select by them', () => {
    const labels = {
      app: 'payments',
      'skep.dev/name': 'x',
      'pod-security.kubernetes.io/enforce': 'privileged',
      team: 'a b',
    };
    const [set] = planned({ labels });
    expect(set?.metadata['labels']).toEqual({
      app: 'a1',
      team: 'a-b',
      'skep.dev/managed': 'true',
      'skep.dev/name': 'a1',
      'skep.dev/state': 'a1b2',
    });
    expect(Object.keys(within(podOf([set as Manifest]).template, 'metadata', 'labels'))).not.toContain(
      'team',
    );
  });

  test('a kubelet makes of arguments and variables what they were', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom('$(A)', '$$(A)', '$', '$$', ''), (text, odd) => {
        expect(expanded(verbatim(text + odd + text), { A: 'replaced' })).toBe(text + odd + text);
      }),
    );
  });
});

describe('what a pod may reach', () => {
  const isolation = (changes: Partial<EgressPolicy>): { isolation: EgressPolicy } => ({
    isolation: {
      workload: 'a1',
      allowAll: false,
      hosts: [],
      ports: [],
      inbound: [],
      runtimeGateway: false,
      ...changes,
    },
  });

  test('nothing without a network, and nothing where its profile allows nothing', () => {
    expect(egressOf(planned({ network: 'none' }))).toEqual([]);
    expect(egressOf(planned(isolation({})))).toEqual([]);
  });

  test('everything but what tells of the machine it is on, by default', () => {
    expect(JSON.stringify(egressOf(planned()))).toContain('{"cidr":"0.0.0.0/0","except":["169.254.0.0/16"]}');
  });

  test('public addresses alone, at the ports of its profile', () => {
    const egress = egressOf(planned(isolation({ ports: [443] })));
    expect(egress).toMatchObject([
      {
        to: [{ ipBlock: { cidr: '0.0.0.0/0' } }, { ipBlock: { cidr: '::/0' } }],
        ports: [{ protocol: 'TCP', port: 443 }],
      },
      { ports: [{ port: 53 }, { port: 53 }] },
    ]);
    expect(JSON.stringify(egress)).toContain('10.0.0.0/8');
  });

  test('single addresses, without asking for names', () => {
    expect(egressOf(planned(isolation({ hosts: ['192.0.2.7', '2001:db8::1'], ports: [443] })))).toEqual([
      {
        to: [{ ipBlock: { cidr: '192.0.2.7/32' } }, { ipBlock: { cidr: '2001:db8::1/128' } }],
        ports: [{ protocol: 'TCP', port: 443 }],
      },
    ]);
  });

  test.each([
    ['a host by its name', isolation({ hosts: ['api.example.com'] }), /api\.example\.com/],
    ['the gateway of an engine', isolation({ allowAll: true, runtimeGateway: true }), /gateway/],
    ['the network of the machine', { network: 'host' }, /"host"/],
  ])('is refused where no policy can say it: %s', (_what, changes, message) => {
    expect(() => planned(changes)).toThrow(
      expect.objectContaining({ code: 'runtime/invalid-workload', message: expect.stringMatching(message) }),
    );
  });

  test('nobody reaches a pod without ports, and others those of its namespace alone', () => {
    const ingress = (changes: Partial<WorkloadSpec>) => planned(changes)[1]?.spec?.['ingress'];
    expect(ingress({})).toEqual([]);
    expect(ingress({ ports: [port(8080)] })).toEqual([
      { from: [{ podSelector: {} }], ports: [{ protocol: 'TCP', port: 8080 }] },
    ]);
  });
});

describe('a patch of the pod', () => {
  test('is merged: members one by one, containers and volumes by name', () => {
    const podPatch = JSON.stringify({
      metadata: { labels: { team: 'x', app: 'other' } },
      spec: {
        nodeSelector: { disk: 'ssd' },
        containers: [
          { name: 'mcp', imagePullPolicy: 'Always' },
          { name: 'side', image: 'b:1' },
        ],
        volumes: [{ name: 'more', emptyDir: {} }],
        enableServiceLinks: null,
      },
    });
    const { template, spec, container } = podOf(planned({ podPatch }));
    expect(spec).toMatchObject({ nodeSelector: { disk: 'ssd' }, automountServiceAccountToken: false });
    expect(spec).not.toHaveProperty('enableServiceLinks');
    expect(spec['containers']).toHaveLength(2);
    expect(spec['volumes']).toHaveLength(4);
    expect(container).toMatchObject({ image: 'fake:1', imagePullPolicy: 'Always' });
    // By these the pod is found.
    expect(within(template, 'metadata', 'labels')).toMatchObject({
      team: 'x',
      app: 'a1',
      'skep.dev/name': 'a1',
    });
  });

  test.each(['', '[]', '{', 'null', '{"status":{}}', '{"spec":[]}', '{"spec":'.repeat(200)])(
    'is refused where it is none: %j',
    (podPatch) => {
      expect(() => planned({ podPatch })).toThrow(
        expect.objectContaining({
          code: 'runtime/invalid-workload',
          message: expect.stringContaining('k8s_pod_template_patch'),
        }),
      );
    },
  );
});
