import { parseConfinedUser } from '../../permissions/confined-user-name.ts';
import { DEFAULT_LIMITS, type Limits } from '../../permissions/limits.ts';
import type { PortBinding, WorkloadSpec } from '../runtime.ts';
import { networkRules } from './network-policy.ts';
import { MANAGED, NAME, objectNames, ownLabels, shownLabels, STATE } from './names.ts';
import { patched, readPodPatch } from './pod-patch.ts';

/** An object as it is applied. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string } & Readonly<Record<string, unknown>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** What a StatefulSet says beside its labels. A cluster's own labels hold less than Skep's. */
export const ANNOTATION = {
  labels: 'skep.dev/labels',
  ports: 'skep.dev/ports',
  reference: 'skep.dev/reference',
  generation: 'skep.dev/generation',
  startedAt: 'skep.dev/started-at',
  pod: 'skep.dev/pod',
  exitCode: 'skep.dev/exit-code',
  exceeded: 'skep.dev/exceeded',
} as const;

export const CONTAINER = 'mcp';
/** Grace of a pod that somebody else ends, in seconds. */
const GRACE_SECONDS = 10;
const AFFINITY_SECONDS = 1800;
const USER = 1000;

export interface PlanOptions {
  /** See `ownerOf`. */
  readonly owner: string;
  /** Later descriptions have higher ones. */
  readonly generation: number;
  /** It chooses users by itself, and refuses those that are named. */
  readonly isOpenShift: boolean;
}

/**
 * The objects of a workload (docs/behaviour/run.md#kubernetes), its StatefulSet first, with no replica: `start` asks for one. Pure; no value
 * of a secret is in them. Fails with `runtime/invalid-workload`.
 */
export function plannedObjects(spec: WorkloadSpec, options: PlanOptions): readonly Manifest[] {
  const names = objectNames(spec.name);
  const labels = ownLabels(spec.name, options.owner);
  const selector = { [MANAGED]: 'true', [NAME]: labels[NAME] ?? '', [STATE]: labels[STATE] ?? '' };
  const of = (name: string): Manifest['metadata'] => ({ name, labels });
  const services = portNumbers(spec.ports).length === 0 ? [] : servicesOf(spec, of, selector);
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: {
        name: names.set,
        labels: { ...shownLabels(spec.labels), ...labels },
        annotations: {
          [ANNOTATION.labels]: JSON.stringify(spec.labels),
          [ANNOTATION.ports]: JSON.stringify(spec.ports),
          [ANNOTATION.reference]: spec.reference,
          [ANNOTATION.generation]: String(options.generation),
        },
      },
      spec: {
        replicas: 0,
        serviceName: names.headless,
        selector: { matchLabels: selector },
        template: podTemplate(spec, labels, options),
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: of(names.policy),
      spec: {
        podSelector: { matchLabels: selector },
        policyTypes: ['Ingress', 'Egress'],
        ...networkRules(spec),
      },
    },
    ...services,
  ];
}

function portNumbers(ports: readonly PortBinding[]): readonly number[] {
  return [...new Set(ports.map(({ containerPort }) => containerPort))].toSorted((a, b) => a - b);
}

function servicesOf(
  { name, ports }: WorkloadSpec,
  of: (name: string) => Manifest['metadata'],
  selector: object,
): readonly Manifest[] {
  const { service, headless } = objectNames(name);
  const listed = portNumbers(ports).map((port) => ({
    name: `p${port}`,
    port,
    targetPort: port,
    protocol: 'TCP',
  }));
  const manifest = (called: string, spec: object): Manifest => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: of(called),
    spec: { selector, ports: listed, ...spec },
  });
  return [
    manifest(headless, { clusterIP: 'None' }),
    manifest(service, {
      type: 'ClusterIP',
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: AFFINITY_SECONDS } },
    }),
  ];
}

function podTemplate(
  spec: WorkloadSpec,
  labels: Readonly<Record<string, string>>,
  { isOpenShift }: PlanOptions,
): Readonly<Record<string, unknown>> {
  const { uid, gid } = userOf(spec);
  const ids = isOpenShift ? {} : { runAsUser: uid, runAsGroup: gid };
  const scratch = ['/tmp', '/var/tmp', '/run'].map((mountPath, at) => ({ name: `scratch-${at}`, mountPath }));
  const container = {
    name: CONTAINER,
    image: spec.reference,
    ...(spec.args.length === 0 ? {} : { args: spec.args.map(verbatim) }),
    env: variables(spec),
    stdin: spec.stdio,
    ports: portNumbers(spec.ports).map((containerPort) => ({ containerPort, protocol: 'TCP' })),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      privileged: false,
      capabilities: { drop: ['ALL'] },
      runAsNonRoot: true,
      ...ids,
    },
    resources: resourcesOf(spec.limits ?? DEFAULT_LIMITS),
    volumeMounts: scratch,
  };
  const template = {
    metadata: { annotations: { 'kubectl.kubernetes.io/default-container': CONTAINER } },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: GRACE_SECONDS,
      securityContext: {
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
        ...ids,
        ...(isOpenShift ? {} : { fsGroup: gid }),
      },
      containers: [container],
      volumes: scratch.map(({ name }) => ({ name, emptyDir: {} })),
    },
  };
  const wanted = spec.podPatch === undefined ? template : patched(template, readPodPatch(spec.podPatch));
  // Whatever a patch says, the pod is found by these.
  return patched(wanted, { metadata: { labels } });
}

/** Who stands for the root of an image was chosen for the files of this machine, and a cluster has none of them. */
function userOf({ user, insteadOfRoot }: WorkloadSpec): { readonly uid: number; readonly gid: number } {
  return user === undefined || user === '' || insteadOfRoot === true
    ? { uid: USER, gid: USER }
    : parseConfinedUser(user);
}

/** A kubelet replaces `$(NAME)` in arguments and variables, and makes one dollar of two (Kubernetes v1 API, Container). */
export function verbatim(text: string): string {
  return text.replaceAll('$', '$$$$');
}

function variables({ name, env, secretEnv = {} }: WorkloadSpec): readonly object[] {
  const { secret } = objectNames(name);
  const plain = Object.entries(env).map(([key, value]) => ({ name: key, value: verbatim(value) }));
  const hidden = Object.keys(secretEnv)
    .filter((key) => !Object.hasOwn(env, key))
    .map((key) => ({ name: key, valueFrom: { secretKeyRef: { name: secret, key } } }));
  return [...plain, ...hidden].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** What is asked for is little, so that a pod finds room; without that as much would be asked for as is allowed. */
function resourcesOf({ memory, cpus, disk }: Limits): object {
  const limits = {
    ...(memory === 0 ? {} : { memory: String(memory) }),
    ...(cpus === 0 ? {} : { cpu: `${Math.ceil(cpus * 1000)}m` }),
    ...(disk === 0 ? {} : { 'ephemeral-storage': String(disk) }),
  };
  const requests = {
    memory: String(memory === 0 ? 64 * 1024 ** 2 : Math.min(memory, 64 * 1024 ** 2)),
    cpu: '10m',
    ...(disk === 0 ? {} : { 'ephemeral-storage': '0' }),
  };
  return { limits, requests };
}
