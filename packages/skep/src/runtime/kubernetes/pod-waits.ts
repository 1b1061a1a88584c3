import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { ClusterApi, Members } from './cluster-api.ts';
import { objectNames } from './names.ts';
import { lifeOf, within, type Life } from './pod-life.ts';

/** How long a pod may take until it is ready, and how long after its grace until it is gone. Milliseconds. */
export const READY_MS = 120_000;
const GONE_MS = 30_000;

interface Waiting {
  readonly api: ClusterApi;
  readonly name: string;
  readonly clock: Pick<Clock, 'elapsed'>;
}

/**
 * The pod of a workload that was just asked for, once it is ready or has ended; `before` is one that is to go. Fails with
 * `runtime/image-not-found` or `runtime/start-failed`, which says what the cluster waits for.
 */
export async function readyPod(
  { api, name, clock }: Waiting,
  before: unknown,
  tell: (line: string) => void = () => undefined,
): Promise<Members> {
  const ref = { kind: 'Pod', name: objectNames(name).pod } as const;
  const end = clock.elapsed() + READY_MS;
  let told = '';
  for (;;) {
    const pod = await api.get(ref);
    const { uid, resourceVersion } = pod === undefined ? {} : within(pod, 'metadata');
    const isNew = pod !== undefined && uid !== before;
    const life: Life = isNew ? lifeOf(pod) : { is: 'none' };
    if (pod !== undefined && (life.is === 'ended' || (life.is === 'running' && life.ready))) return pod;
    const why = whyNot(life);
    if (life.is === 'coming' && life.hopeless) throw failed(name, why, life.missing);
    const left = end - clock.elapsed();
    if (left <= 0) throw failed(name, `${why} for ${READY_MS / 1000} s`, false);
    if (why !== told) tell((told = why));
    await changeWithin(api, ref, resourceVersion, left);
  }
}

/** What a change of an object is waited for, or so many milliseconds. */
export async function changeWithin(
  api: ClusterApi,
  ref: Parameters<ClusterApi['changed']>[0],
  after: unknown,
  ms: number,
): Promise<void> {
  const late = AbortSignal.timeout(Math.min(ms, 10_000));
  try {
    await api.changed(ref, after, late);
  } catch (error) {
    if (!late.aborted) throw error;
  }
}

function whyNot(life: Life): string {
  if (life.is === 'coming') return life.why;
  return life.is === 'running' ? 'its pod is not ready' : 'no pod was made of it';
}

function failed(name: string, why: string, missing: boolean): SkepError {
  return new SkepError(missing ? 'runtime/image-not-found' : 'runtime/start-failed', {
    message: `the pod of "${name}" does not start: ${why}`,
    ...(missing ? {} : { hint: `see kubectl describe pod ${objectNames(name).pod}` }),
  });
}

/**
 * How a pod ended that is being deleted, as far as the cluster tells; `pod` is what it was before that. Fails with
 * `runtime/engine-refused` where it stays.
 */
export async function untilGone({ api, name, clock }: Waiting, pod: Members, graceMs: number): Promise<Life> {
  const ref = { kind: 'Pod', name: objectNames(name).pod } as const;
  const late = AbortSignal.timeout(graceMs + GONE_MS);
  const end = clock.elapsed() + graceMs + GONE_MS;
  const { uid } = within(pod, 'metadata');
  let last: Life = { is: 'none' };
  // Its last state may be told by nothing but the event that it is gone.
  for (let seen = pod; clock.elapsed() < end;) {
    try {
      for await (const { type, object } of api.changes(
        ref,
        within(seen, 'metadata')['resourceVersion'],
        late,
      )) {
        last = latest(last, object);
        if (type === 'DELETED') return last;
      }
    } catch (error) {
      if (!late.aborted) throw error;
    }
    const now = await api.get(ref);
    if (now === undefined || within(now, 'metadata')['uid'] !== uid) return last;
    last = latest(last, now);
    seen = now;
  }
  throw new SkepError('runtime/engine-refused', {
    message: `the pod "${ref.name}" does not end; the node that it is on may be gone`,
    hint: `see kubectl describe pod ${ref.name}`,
  });
}

function latest(before: Life, pod: Members): Life {
  const life = lifeOf(pod);
  return life.is === 'ended' ? life : before;
}
