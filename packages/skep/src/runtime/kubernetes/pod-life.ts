import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { members, readAs, recordOf, text, wholeNumber, listOf } from '@skep/core/settings/shape.ts';
import type { Observed, PortBinding } from '../runtime.ts';
import type { Members } from './cluster-api.ts';
import { ANNOTATION, CONTAINER } from './objects.ts';

/** What a StatefulSet of a workload says. What does not fit is read as if it were not there: anybody may write there. */
export interface SetFacts {
  readonly name: string;
  readonly uid: unknown;
  readonly resourceVersion: unknown;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Members;
  readonly ports: readonly PortBinding[];
  readonly reference: string;
  /** The image of its container now, whoever wrote that. */
  readonly image: unknown;
  readonly generation: number;
  readonly replicas: number;
  readonly createdAt: Date;
  readonly startedAt: Date | undefined;
  /** The pod that its last start was. */
  readonly pod: string | undefined;
}

const labelsShape = recordOf(text);
const portsShape = listOf(members({ hostIp: text, hostPort: wholeNumber(), containerPort: wholeNumber() }));

export function setFacts(set: Members): SetFacts {
  const metadata = within(set, 'metadata');
  const annotations = within(metadata, 'annotations');
  const spec = within(set, 'spec');
  const [container] = listIn(within(spec, 'template', 'spec'), 'containers').filter(
    (one) => one['name'] === CONTAINER,
  );
  const said = (key: string): string => textOf(annotations[key]) ?? '';
  const json = (key: string): unknown => parsedJson(said(key));
  return {
    name: textOf(metadata['name']) ?? '',
    uid: metadata['uid'],
    resourceVersion: metadata['resourceVersion'],
    annotations,
    labels: readAs(labelsShape, json(ANNOTATION.labels)) ?? {},
    ports: readAs(portsShape, json(ANNOTATION.ports)) ?? [],
    reference: said(ANNOTATION.reference),
    image: container?.['image'],
    generation: Number(said(ANNOTATION.generation)) || 0,
    replicas: typeof spec['replicas'] === 'number' ? spec['replicas'] : 1,
    createdAt: dateOf(metadata['creationTimestamp']) ?? new Date(0),
    startedAt: dateOf(said(ANNOTATION.startedAt)),
    pod: textOf(annotations[ANNOTATION.pod]),
  };
}

/** What became of the one container that a start is: a cluster that starts it again makes another server of it. */
export type Life =
  | { readonly is: 'none' }
  | { readonly is: 'coming'; readonly why: string; readonly hopeless: boolean; readonly missing: boolean }
  | { readonly is: 'running'; readonly ready: boolean; readonly startedAt: Date | undefined }
  | { readonly is: 'ended'; readonly exitCode: number; readonly outOfMemory: boolean };

/** Reasons after which a kubelet tries again, in vain. */
const HOPELESS =
  /^(?:ImagePullBackOff|InvalidImageName|ErrImageNeverPull|CreateContainerConfigError|CreateContainerError|RunContainerError)$/;
const NO_IMAGE = /^(?:ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull)$/;
/** The status of a container that nobody tells of: its pod went with its node, say. */
const UNTOLD = 1;

export function lifeOf(pod: Members | undefined): Life {
  if (pod === undefined) return { is: 'none' };
  const status = within(pod, 'status');
  const container = containerOf(pod);
  const { running, terminated, waiting } = within(container, 'state');
  const before = within(container, 'lastState', 'terminated');
  const over = isRecord(terminated) ? terminated : Number(container['restartCount']) > 0 ? before : undefined;
  if (over !== undefined) return ended(over);
  if (status['phase'] === 'Failed' || status['phase'] === 'Succeeded') return ended({});
  if (isRecord(running)) {
    const ready = conditionOf(status, 'Ready')?.['status'] === 'True';
    return { is: 'running', ready, startedAt: dateOf(running['startedAt']) };
  }
  const { reason, message } = isRecord(waiting) ? waiting : (conditionOf(status, 'PodScheduled') ?? {});
  const word = textOf(reason) ?? 'Pending';
  const why = [word, textOf(message)?.slice(0, 300)].filter((one) => one !== undefined).join(': ');
  return { is: 'coming', why, hopeless: HOPELESS.test(word), missing: NO_IMAGE.test(word) };
}

/** Whether the cluster started the container anew after it had ended: what it said before is told apart from what it says now. */
export function isStartedAgain(pod: Members): boolean {
  const container = containerOf(pod);
  return Number(container['restartCount']) > 0 && !isRecord(within(container, 'state')['terminated']);
}

/** What the cluster tells of the container; nothing while its pod has no node yet, or has lost it. */
function containerOf(pod: Members): Members {
  return listIn(within(pod, 'status'), 'containerStatuses').find((one) => one['name'] === CONTAINER) ?? {};
}

function ended({ exitCode, reason }: Members): Life {
  const code = typeof exitCode === 'number' ? exitCode : UNTOLD;
  return { is: 'ended', exitCode: code, outOfMemory: reason === 'OOMKilled' };
}

/** A workload as `Runtime.inspect` tells it. */
export function observed(set: SetFacts, pod: Members | undefined): Observed {
  const { name, reference, labels, createdAt, startedAt, annotations } = set;
  const base = { name, reference, labels, createdAt };
  if (startedAt === undefined) return { ...base, state: 'created' };
  const started = { ...base, startedAt };
  if (set.replicas === 0) {
    const exceeded = annotations[ANNOTATION.exceeded] === 'memory' ? ({ exceeded: 'memory' } as const) : {};
    return {
      ...started,
      state: 'exited',
      exitCode: Number(annotations[ANNOTATION.exitCode] ?? UNTOLD),
      ...exceeded,
    };
  }
  const life = lifeOf(pod);
  const another = set.pod !== undefined && (pod === undefined || within(pod, 'metadata')['uid'] !== set.pod);
  if (life.is === 'ended' || another) {
    const { exitCode, outOfMemory } = life.is === 'ended' ? life : { exitCode: UNTOLD, outOfMemory: false };
    return { ...started, state: 'exited', exitCode, ...(outOfMemory ? { exceeded: 'memory' as const } : {}) };
  }
  return { ...started, state: 'running' };
}

export function within(value: Members, ...keys: readonly string[]): Members {
  const inner: unknown = keys.reduce<unknown>((one, key) => (isRecord(one) ? one[key] : undefined), value);
  return isRecord(inner) ? inner : {};
}

function listIn(value: Members, key: string): readonly Members[] {
  const list = value[key];
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

function conditionOf(status: Members, type: string): Members | undefined {
  return listIn(status, 'conditions').find((one) => one['type'] === type);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function dateOf(value: unknown): Date | undefined {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : new Date(time);
}
