import { readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { Decision } from '../../egress/decision.ts';
import { readDecisions } from '../../egress/read-decisions.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import { forRequest, type RuntimeEnvironment } from '../environment.ts';
import type {
  LogChunk,
  LogRequest,
  Observed,
  Prepared,
  PrepareRequest,
  Runtime,
  RuntimeInfo,
  SeenFiles,
  WorkloadSpec,
} from '../runtime.ts';
import { DEFAULT_LIMITS } from '../../permissions/limits.ts';
import { userFile } from '../user-file.ts';
import { checkWorkloadName, noSuchWorkload, notRunning } from '../workload-name.ts';
import type { Bubblewrap } from './confine.ts';
import { expectMove, groupOf, makeGroup, removeGroup } from './control-groups.ts';
import { checkMounts, checkSpec } from './check-spec.ts';
import { closedMounts, confinedUser, SHARING } from '../../permissions/confined-user.ts';
import type { ConfinedUser } from '../../permissions/confined-user-name.ts';
import { sandboxEvents } from './events.ts';
import { sandboxId } from './sandbox-id.ts';
import { exceededBy, guarded } from './guard.ts';
import { launch } from './launch.ts';
import { bootId } from './linux-process.ts';
import { heldBy, notHeld } from './process-limits.ts';
import * as kept from './kept-data.ts';
import { earlierPart, followFile } from './log-file.ts';
import { isRead, untilLogged } from './log-pipe.ts';
import { hasTree, packageTree } from './package-trees.ts';
import { openNetwork } from './open-network.ts';
import { ownNetworkOf } from './own-network.ts';
import { prepare } from './prepare.ts';
import { attachPipes, holdPipes, makePipes, type HeldPipes } from './pipes.ts';
import { serverState } from './server-state.ts';
import { GATES, workloadPlaces, workloadsDirectory, type WorkloadPlaces } from './places.ts';
import { encodeSpec, readSpec, runState, type KnownWorkload } from './records.ts';
import { removeWhole } from './own-directories.ts';
import { withVolumesOfOne } from './shared-volumes.ts';
import { keepReady } from './ready-directory.ts';
import { treeParts } from './tree-parts.ts';
import { removePackage, sweepUnused } from './sweep.ts';
import { endGateway, killBelow, stopProcesses, untilOver } from './stop.ts';
import { Watches } from './trace/watches.ts';
import { WorkloadDirectories } from './workload-directory.ts';

/** Longest time between two looks at a workload that is waited for, in milliseconds. */
const POLL_MS = 1000;
/** The first of such looks comes after this, each later one after as much more. */
const LOOK_MS = 20;

type Owned = Pick<WorkloadSpec, 'name' | 'mounts' | 'volumes' | 'user'>;

/**
 * The runtime port without a container engine: each workload is a process tree in a bubblewrap sandbox. Its state lies
 * in one directory per workload and in the process table, never in this object alone, so any later process of the same
 * user can take over. Only an attachment made before `start` needs the same object for both.
 */
export class SandboxRuntime implements Runtime {
  readonly kind = 'sandbox';
  readonly runsImages = false;
  readonly reachesLoopback = true;
  readonly keepsFiles = true;
  readonly keepsSecrets = false;
  /** Servers write their log themselves, so that it goes on when the supervisor dies. */
  readonly timesLogs = false;
  readonly limitsHeldBy: string;
  readonly narrowNetwork?: string;
  readonly #environment: RuntimeEnvironment;
  readonly #bubblewrap: Bubblewrap;
  /** Pipes of workloads that were attached to before their start. */
  readonly #held = new Map<string, HeldPipes>();
  readonly #watches: Watches;
  readonly #directories: WorkloadDirectories;

  constructor(environment: RuntimeEnvironment, bubblewrap: Bubblewrap) {
    this.#environment = environment;
    this.#bubblewrap = bubblewrap;
    this.#watches = new Watches(environment.env);
    this.#directories = new WorkloadDirectories(environment, bubblewrap);
    this.limitsHeldBy = heldBy(bubblewrap);
    const { network } = bubblewrap;
    if (typeof network === 'object' && 'missing' in network.slirp) this.narrowNetwork = network.slirp.missing;
  }

  async probe(): Promise<RuntimeInfo> {
    const { kind, narrowNetwork } = this;
    const { version, program: endpoint } = this.#bubblewrap;
    const id = await sandboxId(this.#environment);
    return { kind, id, version, endpoint, ...(narrowNetwork === undefined ? {} : { narrowNetwork }) };
  }

  async newest(source: PackageSource, signal: AbortSignal): Promise<string | undefined> {
    if (source.ecosystem === 'go') {
      const { newestGoVersion } = await import('../go/newest-version.ts');
      return newestGoVersion(this.#environment, source, signal);
    }
    if (source.ecosystem === 'pypi') {
      const { newestPythonVersion } = await import('../pypi/newest-version.ts');
      return newestPythonVersion(this.#environment, source, signal);
    }
    const { newestVersion } = await import('../npm/newest-version.ts');
    return newestVersion(this.#environment, source, signal);
  }

  prepare(request: PrepareRequest): Promise<Prepared> {
    return prepare(forRequest(this.#environment, request), this.#bubblewrap, request);
  }

  has(reference: string): Promise<boolean> {
    return hasTree(this.#environment, reference);
  }

  async pin({ reference }: Pick<WorkloadSpec, 'reference'>): Promise<string> {
    return reference;
  }

  /** A package tree is named after its exact version. */
  async isCurrent(): Promise<boolean> {
    return true;
  }

  async discard(reference: string): Promise<void> {
    const used = (await this.list()).some((workload) => workload.reference === reference);
    if (!used) await removePackage(this.#environment, reference);
  }

  async sweep(keep: readonly string[] = []): Promise<void> {
    const used = new Set([
      ...keep,
      ...(await this.list()).flatMap(({ name, reference }) => [name, reference]),
    ]);
    await sweepUnused(this.#environment, used);
  }

  async cautions(wanted: Parameters<Runtime['cautions']>[0]) {
    const noEffect = wanted.readOnly === true ? ['--read-only has no effect in the sandbox'] : [];
    const held = notHeld(this.#bubblewrap, wanted.limits);
    return [...this.#watches.cautions(wanted), ...noEffect, ...held, ...(await this.#closed(wanted))];
  }

  async #closed(wanted: Owned): Promise<readonly string[]> {
    // Started by an ordinary user, the server may do with a mount what that user may.
    if (this.#bubblewrap.setpriv === undefined) return [];
    const user = await this.#userOf(wanted);
    return (await closedMounts(user, wanted.mounts)).map(
      (mount) =>
        `the server ${mount}, because it runs as user ${user.uid} (chown it, or give --sandbox-user UID or root)`,
    );
  }

  async create(spec: WorkloadSpec): Promise<void> {
    const { groups } = this.#bubblewrap;
    // As a rule it is started next, and `makeGroup` would tell the kernel too late for that.
    if (groups) void expectMove(groups);
    await this.#check(spec);
    await this.#directories.make(spec);
  }

  keepReady(reference: string): Promise<void> {
    return keepReady(this.#environment, reference);
  }

  makeSpare(): Promise<void> {
    return this.#directories.makeSpare();
  }

  async #check(spec: WorkloadSpec): Promise<void> {
    await checkSpec(spec, ownNetworkOf(spec, this.#bubblewrap.network) !== undefined);
    await packageTree(this.#environment, spec.reference);
  }

  /** In its place, so that what the server keeps for itself and its log stay. */
  async replace(spec: WorkloadSpec): Promise<boolean> {
    await this.#check(spec);
    const { places } = await this.#known(spec.name);
    await this.#directories.drop(spec.name);
    const { stdin, stdout, stderr, life } = places;
    const pipes = [stdin, stdout, stderr, life, ...GATES.map((one) => places[one])];
    for (const file of [places.run, places.status, ...pipes]) await removeFile(file);
    await atomicWrite(places.spec, encodeSpec({ spec, createdAt: new Date() }));
    return true;
  }

  async start(name: string, secretEnv: WorkloadSpec['secretEnv'] = {}): Promise<void> {
    const { places, spec: saved, run } = await this.#known(name);
    const spec = { ...saved, env: { ...secretEnv, ...saved.env } };
    if (run.state === 'running') return;
    // It may have been made by an earlier release, and its sources may have changed.
    await checkMounts(spec);
    const tree = await packageTree(this.#environment, spec.reference);
    const node = await realpath(this.#environment.execPath);
    const bubblewrap = this.#bubblewrap;
    const user = await this.#userOf(spec);
    const network = ownNetworkOf(spec, bubblewrap.network);
    try {
      // All that has begun is over before the workload may be removed.
      await using begun = new AsyncDisposableStack();
      const ahead = begun.use(this.#directories.take(name));
      // What is left of the last run may still have the ports.
      if (!ahead) await endGateway(places);
      // The network takes longest, so it is begun first.
      const pipes = Promise.resolve().then(() => makePipes(places, spec.stdio));
      const wanted = { bubblewrap, network, node, places, ports: spec.ports, pipes };
      const opening = ahead?.opening ?? begun.use(openNetwork(wanted));
      const owner = bubblewrap.setpriv === undefined ? undefined : user;
      const making = serverState({ places, reference: spec.reference, tree, user: owner });
      const data = { environment: this.#environment, spec, user: owner };
      const state = making.then(async (own) => [
        ...own.mounts,
        ...(await kept.dataMounts({ ...data, ...own })),
      ]);
      begun.defer(async () => void (await Promise.allSettled([state])));
      const [own, group] = await Promise.all([
        treeParts(tree, user),
        bubblewrap.groups && makeGroup(bubblewrap.groups, places, spec.limits ?? DEFAULT_LIMITS),
        pipes,
      ]);
      const launching = { spec, tree, node, ...own, user, state, network, group, bubblewrap, places };
      using tracing = await this.#watches.begin(launching);
      const complete = async () => (await making).complete();
      await launch({ ...launching, opening, log: ahead?.log, complete, traced: tracing?.within });
    } finally {
      this.#release(name);
    }
  }

  seen(name: string): Promise<SeenFiles> {
    return this.#watches.seen(name);
  }

  async attach(name: string) {
    const { places, spec, run } = await this.#known(name);
    if (!spec.stdio) {
      throw new SkepError('runtime/not-running', { message: `workload "${name}" does not speak over stdio` });
    }
    if (run.state === 'exited') throw notRunning(name);
    // Until the workload holds its pipes itself, somebody must, or the attachment would end at once.
    if (run.state === 'created' && !this.#held.has(name)) {
      await makePipes(places, spec.stdio);
      this.#held.set(name, holdPipes(places));
    }
    return attachPipes(places, name);
  }

  async wait(name: string, signal: AbortSignal): Promise<number> {
    for (let looks = 0; ; looks += 1) {
      const known = await this.#known(name);
      const { run } = known;
      if (run.state === 'exited') return run.exitCode;
      if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
      // While it runs nothing has to be looked at: the kernel tells when the last process lets go of its pipe. Looks
      // between are for the moment in which it is still in the process table, and for what has not started yet.
      if (looks > 0) await pause(Math.min(LOOK_MS * looks, POLL_MS), undefined, { signal }).catch(() => {});
      await this.#untilEnded(known, signal);
    }
  }

  /** Whoever waits for a workload also guards its limits, where the kernel does not hold them. */
  async #untilEnded({ places, spec, run }: KnownWorkload, signal: AbortSignal): Promise<void> {
    if (run.state !== 'running') return;
    const { limits = DEFAULT_LIMITS, volumes } = spec;
    const keeps = [places.state, ...kept.writtenDirectories(this.#environment, spec)];
    const what = { ...run, places, limits, volumes, keeps };
    await guarded(what, signal, () => untilOver(places, run, signal));
  }

  async stop(name: string, graceMs: number): Promise<void> {
    try {
      const known = await this.#find(name);
      if (known?.run.state === 'running') {
        await stopProcesses(known.run.init, graceMs, known.places.status);
        await untilLogged(known.places, undefined);
      }
      if (known) await endGateway(known.places);
    } catch (error) {
      // Of a damaged description one thing is known: where its processes log to.
      if (!hasCode(error, 'workload/state-unreadable')) throw error;
      await killBelow(path.join(workloadsDirectory(this.#environment), name));
    }
  }

  async remove(name: string): Promise<void> {
    checkWorkloadName(name);
    const root = workloadsDirectory(this.#environment);
    const { groups } = this.#bubblewrap;
    await this.stop(name, 0);
    this.#release(name);
    await this.#directories.drop(name);
    // Whatever is known of its last start, which may have failed or been cut short.
    if (groups) await removeGroup(groupOf(groups, workloadPlaces(path.join(root, name))));
    const environment = this.#environment;
    await withVolumesOfOne(environment, name, (own) => kept.removeEmptyData(environment, name, own));
    // By this the rest is found, so a removal that is cut short before is done again.
    await removeWhole(root, name, this.#environment);
  }

  dataPlaces(spec: Pick<WorkloadSpec, 'name' | 'data' | 'volumes'>): readonly string[] {
    return kept.keptDirectories(this.#environment, spec);
  }

  holdsData(name: string, _owner: string, volumes: readonly string[] = []): Promise<boolean> {
    checkWorkloadName(name);
    return kept.holdsData(this.#environment, name, volumes);
  }

  removeData(name: string, _owner: string, volumes: readonly string[] = []): Promise<void> {
    checkWorkloadName(name);
    return kept.removeData(this.#environment, name, volumes);
  }

  async inspect(name: string): Promise<Observed | undefined> {
    const known = await this.#find(name);
    if (!known) return undefined;
    const { spec, createdAt, run } = known;
    const exceeded = await exceededBy(run, known.places);
    return {
      name,
      state: run.state,
      ...(run.state === 'exited' ? { exitCode: run.exitCode } : {}),
      ...(exceeded === undefined ? {} : { exceeded }),
      ...(run.state === 'running' && run.interrupted === true ? { interrupted: true } : {}),
      reference: spec.reference,
      labels: spec.labels,
      createdAt,
      ...(run.state === 'created' ? {} : { startedAt: run.startedAt }),
    };
  }

  async list(): Promise<readonly Observed[]> {
    const names = (await ifThere(readdir(workloadsDirectory(this.#environment)))) ?? [];
    const visible = names.filter((name) => !name.startsWith('.'));
    const all = await Promise.all(visible.map((name) => this.#inspectReadable(name)));
    return all.filter((one) => one !== undefined);
  }

  /** A damaged description must not hide the other workloads. */
  async #inspectReadable(name: string): Promise<Observed | undefined> {
    try {
      return await this.inspect(name);
    } catch (error) {
      if (hasCode(error, 'workload/state-unreadable')) return undefined;
      throw error;
    }
  }

  async traffic(name: string): Promise<readonly Decision[]> {
    const { places } = await this.#known(name);
    return readDecisions((await userFile(places.decisions)) ?? '');
  }

  async *logs(name: string, request: LogRequest): AsyncGenerator<LogChunk> {
    const { places, run } = await this.#known(name);
    const over = async () => (await this.#find(name))?.run.state !== 'running' && !isRead(places);
    await untilLogged(places, run.state === 'running' ? run.keeper : undefined);
    const options = { ...request, over, pollMs: POLL_MS };
    const earlier = await earlierPart(places.log, request.tail);
    if (earlier !== undefined) yield { stream: 'stderr', bytes: earlier };
    for await (const bytes of followFile(places.log, options)) yield { stream: 'stderr', bytes };
  }

  events(signal: AbortSignal) {
    return sandboxEvents(workloadsDirectory(this.#environment), () => this.list(), signal);
  }

  async #known(name: string) {
    const known = await this.#find(name);
    if (!known) throw noSuchWorkload(name);
    return known;
  }

  async #find(name: string) {
    checkWorkloadName(name);
    const places: WorkloadPlaces = workloadPlaces(path.join(workloadsDirectory(this.#environment), name));
    const saved = await readSpec(places.spec);
    return saved && { ...saved, places, run: await runState(places, await bootId()) };
  }

  /** Servers that share volumes are one user, so that each may change what another wrote. */
  #userOf({ name, mounts, volumes = [], user }: Owned): Promise<ConfinedUser> {
    const asRoot = this.#bubblewrap.setpriv !== undefined;
    return confinedUser({ asRoot, name: volumes.length > 0 ? SHARING : name, mounts, wanted: user });
  }

  #release(name: string): void {
    this.#held.get(name)?.[Symbol.dispose]();
    this.#held.delete(name);
  }
}
