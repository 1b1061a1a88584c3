import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type {
  Attachment,
  LogChunk,
  LogRequest,
  Observed,
  Prepared,
  PrepareRequest,
  Runtime,
  RuntimeEvent,
  RuntimeInfo,
  SeenFiles,
  WorkloadSpec,
} from '../runtime.ts';
import { checkWorkloadName, noSuchWorkload, notRunning } from '../workload-name.ts';
import { checkSpec, invalid } from './check-spec.ts';
import type { ClusterApi, ObjectRef } from './cluster-api.ts';
import { workloadEvents } from './events.ts';
import { isConflict } from './failure.ts';
import { podLog } from './logs.ts';
import { MANAGED, objectNames, ownLabels, STATE } from './names.ts';
import { ANNOTATION, plannedObjects, type Manifest } from './objects.ts';
import { isWhose, place, placeSecrets, removeBeside, takenBy } from './place-objects.ts';
import { isStartedAgain, lifeOf, observed, setFacts, within, type SetFacts } from './pod-life.ts';
import { attachToPod, connectToPod, type PodLinks } from './pod-link.ts';
import { changeWithin, readyPod, untilGone } from './pod-waits.ts';
import { OwnSets, setRef, TRIES } from './own-sets.ts';
import { openRelay, type Relay } from './relay.ts';
import { attachment, laterAttachment } from './stdio.ts';

export interface KubernetesOptions extends PodLinks {
  readonly info: Pick<RuntimeInfo, 'id' | 'endpoint'>;
  /** See `ownerOf`. */
  readonly owner: string;
}

/** The exit status of a server that was told to end, where the cluster does not say which it was. */
const TERMINATED = 143;
/** A pod that is to go with its workload is given little time. */
const REMOVE_GRACE_MS = 1_000;

/**
 * The runtime port on a Kubernetes cluster: a workload is a StatefulSet of one pod, which runs while it has a replica
 * (docs/behaviour/run.md#kubernetes, decision 0401).
 */
export class KubernetesRuntime implements Runtime {
  readonly kind = 'kubernetes';
  readonly runsImages = true;
  readonly reachesLoopback = false;
  readonly keepsFiles = false;
  readonly keepsSecrets = false;
  readonly timesLogs = true;
  readonly limitsHeldBy = 'the cluster';
  readonly #api: ClusterApi;
  readonly #clock: Clock;
  readonly #options: KubernetesOptions;
  readonly #sets: OwnSets;
  readonly #relays = new Map<string, Relay>();
  #isOpenShift: boolean | undefined;

  constructor(options: KubernetesOptions) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#sets = new OwnSets(options.api, options.owner);
    this.#options = options;
  }

  async probe(signal: AbortSignal): Promise<RuntimeInfo> {
    const { gitVersion } = await this.#api.version(signal);
    // Who may not even list them can do nothing else here, and hears it before anything is made.
    await this.#api.list('StatefulSet', this.#selector());
    return {
      kind: this.kind,
      version: typeof gitVersion === 'string' ? gitVersion : '',
      ...this.#options.info,
    };
  }

  /** The cluster fetches images itself, when a pod needs them. */
  async prepare({ source, verification, signal }: PrepareRequest): Promise<Prepared> {
    if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
    if (source.kind === 'package') {
      throw invalid(
        'a cluster runs images alone, and builds none of a package',
        'build one with skep build --runtime docker, push it and run its reference; or run it here with --runtime sandbox',
      );
    }
    if (verification?.required === true) {
      throw new SkepError('runtime/unverified', {
        message: 'images that a cluster fetches are not verified by Skep',
        hint: 'have an admission policy of the cluster verify them, and give --image-verification warn',
      });
    }
    const doubt =
      verification === undefined
        ? {}
        : { doubt: 'the cluster fetches the image, so Skep verifies no signature of it' };
    return { reference: source.reference, ours: false, exposedPorts: [], ...doubt };
  }

  async newest(): Promise<undefined> {}

  /** Whether an image is there is the cluster's to find out. */
  async has(): Promise<boolean> {
    return true;
  }

  async pin({ name, reference }: Pick<WorkloadSpec, 'name' | 'reference'>): Promise<string> {
    return (await this.#sets.own(name))?.reference || reference;
  }

  async discard(): Promise<void> {}

  async sweep(): Promise<void> {}

  async cautions(wanted: Parameters<Runtime['cautions']>[0]): Promise<readonly string[]> {
    checkSpec(wanted);
    return ['what it may reach is held where the network of the cluster enforces a NetworkPolicy'];
  }

  dataPlaces(): readonly string[] {
    return [];
  }

  async holdsData(): Promise<boolean> {
    return false;
  }

  async removeData(): Promise<void> {}

  async create(spec: WorkloadSpec): Promise<void> {
    checkWorkloadName(spec.name);
    checkSpec(spec);
    const set = await this.#api.get(setRef(spec.name));
    if (set !== undefined) throw takenBy(setRef(spec.name), this.#api.namespace);
    const generation = Date.now();
    try {
      await this.#place(spec, generation);
    } catch (error) {
      await this.#removeObjects(spec.name);
      throw error;
    }
    this.#sets.remember(spec.name, generation, spec.ports);
  }

  async replace(spec: WorkloadSpec): Promise<boolean> {
    checkSpec(spec);
    const before = await this.#sets.there(spec.name);
    for (let tries = 1; ; tries += 1) {
      const { generation: latest, uid, resourceVersion } = await this.#sets.there(spec.name);
      const generation = Math.max(Date.now(), latest + 1);
      const [set, ...others] = await this.#planned(spec, generation);
      if (set === undefined) throw new SkepError('internal/bug');
      try {
        // Of the version that was just judged: whoever made a later one meanwhile is not overwritten.
        const metadata = { ...set.metadata, uid, resourceVersion };
        await this.#api.apply({ ...set, metadata }, true);
        this.#sets.remember(spec.name, generation, spec.ports);
        await this.#sets.mark(spec.name, {
          [ANNOTATION.startedAt]: null,
          [ANNOTATION.pod]: null,
          [ANNOTATION.exitCode]: null,
        });
        await removeBeside(this.#api, this.#sets.whose(spec.name), others.map(refOf));
        for (const manifest of others) await place(this.#api, this.#sets.whose(spec.name), manifest);
        return before.startedAt === undefined;
      } catch (error) {
        if (!isConflict(error) || tries === TRIES) throw error;
      }
    }
  }

  /** False where somebody else wrote another image into it. */
  async isCurrent(name: string): Promise<boolean> {
    const { image, reference } = await this.#sets.there(name);
    return image === reference;
  }

  async start(
    name: string,
    secretEnv?: WorkloadSpec['secretEnv'],
    tell?: (line: string) => void,
  ): Promise<void> {
    const set = await this.#sets.there(name);
    const pod = await this.#api.get(podRef(name));
    if (observed(set, pod).state === 'running') return;
    this.#sets.remember(name, set.generation);
    await placeSecrets(this.#api, this.#sets.whose(name), secretEnv);
    const before = pod === undefined ? undefined : within(pod, 'metadata')['uid'];
    const started = new Date(this.#clock.now()).toISOString();
    const marks = {
      [ANNOTATION.startedAt]: started,
      [ANNOTATION.pod]: null,
      [ANNOTATION.exitCode]: null,
      [ANNOTATION.exceeded]: null,
    };
    await this.#sets.mark(name, marks, { spec: { replicas: 1 } });
    try {
      if (before !== undefined) await this.#api.delete(podRef(name), before, 1);
      const ready = await readyPod({ api: this.#api, name, clock: this.#clock }, before, tell);
      await this.#sets.mark(name, { [ANNOTATION.pod]: within(ready, 'metadata')['uid'] });
    } catch (error) {
      await this.#scaleDown(name);
      throw error;
    }
  }

  async attach(name: string): Promise<Attachment> {
    const seen = await this.inspect(name);
    if (seen === undefined) throw noSuchWorkload(name);
    if (seen.state === 'exited') throw notRunning(name);
    const closing = new AbortController();
    const { signal } = closing;
    const goesOn = async (): Promise<boolean> => (await this.inspect(name))?.state === 'running';
    if (seen.state === 'running')
      return attachment(await attachToPod(this.#options, name, { signal, goesOn }));
    const coming = this.#untilStarted(name, signal).then(() =>
      attachToPod(this.#options, name, { signal, goesOn }),
    );
    return laterAttachment(coming, () => closing.abort());
  }

  /** Whoever waits for a workload hosts it: as long as it runs, its ports are ports of this machine. */
  async wait(name: string, signal: AbortSignal): Promise<number> {
    let late = false;
    for (;;) {
      if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
      const set = await this.#sets.there(name, signal);
      if (!this.#sets.knows(name)) this.#sets.remember(name, set.generation);
      const pod = await this.#api.get(podRef(name), signal);
      const { state, exitCode = TERMINATED } = observed(set, pod);
      // Whoever stops it says how it ended a moment later.
      const isTold = set.replicas > 0 || set.annotations[ANNOTATION.exitCode] !== undefined;
      if (state === 'exited' && (isTold || late)) {
        this.#closeRelay(name);
        return exitCode;
      }
      if (state === 'running') await this.#hostPorts(set);
      if (state === 'exited') {
        late = pod === undefined;
        await changeWithin(this.#api, setRef(name), set.resourceVersion, 2_000);
      } else if (pod === undefined) await changeWithin(this.#api, podRef(name), undefined, 2_000);
      else await this.#api.changed(podRef(name), within(pod, 'metadata')['resourceVersion'], signal);
    }
  }

  async stop(name: string, graceMs: number): Promise<void> {
    const set = await this.#sets.own(name);
    if (set === undefined || set.replicas === 0) return;
    this.#sets.checkLatest(set);
    this.#closeRelay(name);
    const pod = await this.#api.get(podRef(name));
    await this.#sets.mark(name, {}, { spec: { replicas: 0 } });
    let life = lifeOf(pod);
    if (pod !== undefined) {
      const over = life.is === 'ended';
      const { uid } = within(pod, 'metadata');
      await this.#api.delete(podRef(name), uid, over ? 0 : Math.ceil(graceMs / 1000));
      const last = await untilGone({ api: this.#api, name, clock: this.#clock }, pod, graceMs);
      if (!over) life = last;
    }
    const exitCode = life.is === 'ended' ? life.exitCode : TERMINATED;
    const exceeded = life.is === 'ended' && life.outOfMemory ? { [ANNOTATION.exceeded]: 'memory' } : {};
    await this.#sets.mark(name, { [ANNOTATION.exitCode]: String(exitCode), ...exceeded });
    await placeSecrets(this.#api, this.#sets.whose(name));
  }

  async remove(name: string): Promise<void> {
    const set = await this.#sets.own(name);
    if (set === undefined) return;
    this.#sets.checkLatest(set);
    await this.stop(name, REMOVE_GRACE_MS);
    await this.#removeObjects(name);
    this.#sets.forget(name);
  }

  async inspect(name: string): Promise<Observed | undefined> {
    const [set, pod] = await Promise.all([this.#api.get(setRef(name)), this.#api.get(podRef(name))]);
    if (set === undefined) return undefined;
    const seen = observed(setFacts(set), pod);
    // What somebody else made is there, and says nothing of ours.
    return isWhose(set, this.#sets.whose(name)) ? seen : { ...seen, labels: {} };
  }

  async list(): Promise<readonly Observed[]> {
    const [sets, pods] = await Promise.all([
      this.#api.list('StatefulSet', this.#selector()),
      this.#api.list('Pod', this.#selector()),
    ]);
    const byName = new Map(pods.map((pod) => [within(pod, 'metadata')['name'], pod]));
    return sets.map(setFacts).map((set) => observed(set, byName.get(objectNames(set.name).pod)));
  }

  async *logs(name: string, request: LogRequest): AsyncGenerator<LogChunk> {
    const pod = await this.#api.get(podRef(name));
    if (pod === undefined) return;
    yield* podLog(this.#api, { name: objectNames(name).pod, previous: isStartedAgain(pod) }, request);
  }

  async traffic(): Promise<readonly never[]> {
    return [];
  }

  async seen(): Promise<SeenFiles> {
    return { paths: new Map(), complete: false, unseen: ['what a pod does with files'] };
  }

  events(signal: AbortSignal): AsyncGenerator<RuntimeEvent> {
    return workloadEvents(() => this.list(), this.#clock, signal);
  }

  #selector(): string {
    const labels = ownLabels('', this.#options.owner);
    return [MANAGED, STATE].map((key) => `${key}=${labels[key] ?? ''}`).join(',');
  }

  async #planned(spec: WorkloadSpec, generation: number): Promise<readonly Manifest[]> {
    this.#isOpenShift ??= await this.#api.hasGroup('security.openshift.io');
    return plannedObjects(spec, { owner: this.#options.owner, generation, isOpenShift: this.#isOpenShift });
  }

  async #place(spec: WorkloadSpec, generation: number): Promise<void> {
    for (const manifest of await this.#planned(spec, generation))
      await place(this.#api, this.#sets.whose(spec.name), manifest);
  }

  /** After a start that failed; that failure is what the person hears. */
  async #scaleDown(name: string): Promise<void> {
    try {
      await this.stop(name, 0);
    } catch (error) {
      if (!hasCode(error, 'runtime/engine-refused') && !hasCode(error, 'runtime/engine-unreachable'))
        throw error;
    }
  }

  async #removeObjects(name: string): Promise<void> {
    this.#closeRelay(name);
    await removeBeside(this.#api, this.#sets.whose(name));
    const set = await this.#sets.own(name);
    if (set !== undefined) await this.#api.delete(setRef(name), set.uid);
  }

  async #untilStarted(name: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const set = await this.#sets.there(name, signal);
      const pod = await this.#api.get(podRef(name), signal);
      if (lifeOf(pod).is === 'running') return;
      if (observed(set, pod).state === 'exited') throw notRunning(name);
      const [ref, after] =
        set.replicas === 0
          ? [setRef(name), set.resourceVersion]
          : [podRef(name), pod === undefined ? undefined : within(pod, 'metadata')['resourceVersion']];
      await this.#api.changed(ref, after, signal);
    }
  }

  async #hostPorts(set: SetFacts): Promise<void> {
    const { name } = set;
    const bindings = this.#sets.hostPorts(set);
    if (bindings.length === 0 || this.#relays.has(name)) return;
    const relay = await openRelay(bindings, (port) => connectToPod(this.#options, name, port));
    this.#relays.get(name)?.close();
    this.#relays.set(name, relay);
  }

  #closeRelay(name: string): void {
    this.#relays.get(name)?.close();
    this.#relays.delete(name);
  }
}

const podRef = (name: string): ObjectRef => ({ kind: 'Pod', name: objectNames(name).pod });

function refOf({ kind, metadata: { name } }: Manifest): ObjectRef {
  return { kind: kind as ObjectRef['kind'], name };
}
