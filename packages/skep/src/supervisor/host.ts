import { nameFullDisk } from '@skep/core/files/write-failure.ts';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { findRunConfig, loadRunConfig, promisedPorts, saveRunConfig } from '../run-config/file.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { workloadUrl } from '../run-config/workload-url.ts';
import type { Proxy } from '@skep/proxy/start.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import { choosePort } from '../runtime/free-port.ts';
import type { Endpoint, ShownCounts, Tell, ToolCounts } from './protocol.ts';
import { GRACE_MS, inspectOwn } from './launch.ts';
import type { HostDeps } from './host-deps.ts';
import { noteData, noteGoing } from './kept-data.ts';
import { keepPort } from '../run-config/kept-ports.ts';
import { MadeAhead } from './made-ahead.ts';
import { keepWhatShowed } from './keep-what-showed.ts';
import { whyStopped } from './policy.ts';
import { endElsewhere, hostedElsewhere } from './end-elsewhere.ts';
import { isUnreachable } from './unreachable.ts';
import { overlaysOf } from './overlays.ts';
import { takenPort } from './port-holder.ts';
import { removeWorkload, type Removal } from './remove-workload.ts';
import { openStatusRecord, readStatus, wasEnded, type StatusRecord } from './state.ts';
import { supervise, type Supervised, type SuperviseDeps, type SuperviseOptions } from './supervise.ts';
import { waitForOthers } from './wait-for-others.ts';

export interface StartRequest extends SuperviseOptions {
  /** What the workload runs on, where whoever asks is connected to it and has made sure of it. */
  readonly runtime?: Runtime;
  /** The run has drawn the port, and nobody relies on it yet: where another program was faster, it may be another one. */
  readonly movable?: boolean | undefined;
  /** The values of its secret variables, where whoever asks has looked them up. */
  readonly secrets?: SecretEnv | undefined;
  /** See `WorkloadSpec.learns`. */
  readonly learns?: boolean;
  /** What it is to be from now on: what runs of it is ended, and this saved. */
  readonly config?: RunConfig | undefined;
}

type End = 'stopping' | 'removing';

function withHardening({ endpoint, hardening }: Supervised): Endpoint {
  return hardening === undefined ? endpoint : { ...endpoint, hardening };
}

function endedMeanwhile(name: string, what: string): SkepError {
  return new SkepError('run/cancelled', { message: `"${name}" was ${what} while it started`, hint: '' });
}

/** How often another port is chosen for a proxy whose port was taken. */
const MAX_MOVES = 10;

/**
 * All workloads hosted by this process. Operations on one name run one after the other, on different names at once.
 * It is the only writer of their status files while it hosts them.
 */
export class Host {
  readonly #deps: HostDeps;
  readonly #hosted = new Map<string, Supervised>();
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #records = new Map<string, StatusRecord>();
  /** Starts that wait or are under way, for a stop or removal that does not want them any more. */
  readonly #starts = new Map<string, Set<AbortController>>();
  /** Whose end is under way or could not be finished, also where the disk has no room to say so. */
  readonly #ends = new Map<string, End>();
  readonly #ahead: MadeAhead;
  #began = (): void => {};

  /** Resolves when the first workload is hosted. */
  readonly hosting = new Promise<void>((resolve) => (this.#began = resolve));

  constructor(deps: HostDeps) {
    this.#deps = deps;
    this.#ahead = new MadeAhead(deps, () => this.#hosted.size > 0);
  }

  /** Names hosted or being worked on. */
  get busyWith(): readonly string[] {
    return [...new Set([...this.#hosted.keys(), ...this.#starts.keys(), ...this.#turns.keys()])];
  }

  /** Resolves when no stop and no removal is under way; at once while something is hosted, or starts. */
  async ended(): Promise<void> {
    if (this.#hosted.size === 0 && this.#starts.size === 0) await Promise.allSettled(this.#turns.values());
  }

  /** What somebody has begun to do to it, and is to be finished; its status may not say so on a disk that is full. */
  endOf(name: string): End | undefined {
    return this.#ends.get(name);
  }

  /** What answers for the workload of exactly this name, while this process hosts it. */
  proxyOf(name: string): Proxy | undefined {
    return this.#hosted.get(name)?.proxy;
  }

  /** What was counted of the tools of each workload; milliseconds are whole. */
  toolCounts(): ShownCounts {
    const counts = [...this.#hosted].map(([name, { proxy }]): [string, ToolCounts] => [
      name,
      (proxy.toolCounts?.() ?? []).map((count) => ({ ...count, ms: Math.round(count.ms) })),
    ]);
    return Object.fromEntries(counts);
  }

  /**
   * Starts a saved workload; one that runs already is left alone, unless it is to be another one from now on. On failure
   * the status says `error`; with `file/locked` another process goes on starting it.
   */
  start(name: string, given: StartRequest): Promise<Endpoint> {
    if (given.config) this.#endStarts(name, 'changed');
    else if (given.how === 'start') this.#ends.delete(name);
    const ending = new AbortController();
    const request = { ...given, signal: AbortSignal.any([given.signal, ending.signal]) };
    const starts = this.#starts.get(name) ?? new Set();
    this.#starts.set(name, starts.add(ending));
    const start = async (): Promise<Endpoint> => {
      request.signal.throwIfAborted();
      const hosted = this.#hosted.get(name);
      const { config: next } = request;
      if (hosted && !next) return { url: hosted.endpoint.url, port: hosted.endpoint.port };
      const config = await loadRunConfig(this.#deps.places, name);
      const elsewhere = await hostedElsewhere(name, this.#deps);
      if (elsewhere && elsewhere.pid !== request.begunBy?.pid)
        return { url: workloadUrl(config), port: config.port };
      if (next) await this.#refuseStopped(name, next);
      else if (request.how === 'resume' && (await this.#wasStopped(name)))
        throw endedMeanwhile(name, 'stopped');
      try {
        if (next) await this.#makeWay(config, next);
        return await this.#take(next ?? config, request);
      } catch (failure) {
        const error = nameFullDisk(failure);
        // What was cut short fails in its own way; why it was cut is what people must hear.
        const cause: unknown = request.signal.aborted ? request.signal.reason : error;
        await this.#recordFailure(name, request, cause);
        throw cause;
      }
    };
    const started = waitForOthers(name, request, this.#deps).then(() => this.#inTurn(name, start));
    return started.finally(() => {
      starts.delete(ending);
      if (starts.size === 0) this.#starts.delete(name);
    });
  }

  /** Stops a workload; false when there was nothing to stop. */
  stop(name: string, graceMs: number): Promise<boolean> {
    this.#endStarts(name, 'stopped');
    return this.#inTurn(name, async () => {
      const config = await loadRunConfig(this.#deps.places, name);
      const before = await readStatus(this.#deps.places, name);
      await endElsewhere(name, this.#deps);
      // A workload in the foreground removes itself when its process is asked to end.
      if (before && (await readStatus(this.#deps.places, name)) === undefined) return true;
      const runtime = await this.#begin(name, config, 'stopping');
      const seen = await inspectOwn(name, { runtime, owner: this.#deps.owner });
      if (seen) await runtime.stop(name, graceMs);
      await this.record(name).set('stopped');
      this.#ends.delete(name);
      await this.#ahead.clear();
      return seen?.state === 'running' || (before !== undefined && before.status !== 'stopped');
    });
  }

  /** Removes a workload and everything made for it; answers with where its data stays. A missing one is fine. */
  remove(name: string, removal: Removal = {}): Promise<readonly string[]> {
    this.#endStarts(name, 'removed');
    return this.#inTurn(name, async () => {
      await endElsewhere(name, this.#deps);
      // One that is missing or damaged must not keep the rest from being removed.
      const config = await findRunConfig(this.#deps.places, name);
      const runtime = await this.#begin(name, config, 'removing', removal);
      await this.#deps.clients?.gone(name);
      const stays = await removeWorkload(name, { ...this.#deps, config, runtime }, removal);
      if (config) await this.#ahead.kept(config.image);
      this.#records.delete(name);
      this.#ends.delete(name);
      await this.#ahead.clear();
      return stays;
    });
  }

  /**
   * What a workload that is to end runs on. Whoever finds it half ended is to finish that, and not to start it, also where
   * that does not answer now; another engine's is left as it is, with `workload/other-engine`.
   */
  async #begin(
    name: string,
    config: RunConfig | undefined,
    word: End,
    { data = false }: Removal = {},
  ): Promise<Runtime> {
    const opening = this.#deps.openRuntime(config?.runtime);
    const failure: unknown = await opening.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (hasCode(failure, 'workload/other-engine')) throw failure;
    if (data) await this.#noteDataGoes(name);
    await this.#noteEnd(name, word);
    await this.#hosted.get(name)?.release();
    if (failure === undefined) return opening;
    // Whoever watched it may have said meanwhile that its engine is away.
    await this.#noteEnd(name, word);
    if (!(failure instanceof SkepError)) throw failure;
    const { message, detail, hint } = failure;
    const what = word === 'stopping' ? 'stopped' : data ? 'removed, with its data,' : 'removed';
    const later = `${hint}; "${name}" is ${what} as soon as that works`;
    throw new SkepError(failure.code, { message, detail, hint: later, cause: failure });
  }

  /** The next supervisor is to know it, too; what cannot be written is removed all the same. */
  async #noteDataGoes(name: string): Promise<void> {
    const { places, log } = this.#deps;
    await Promise.all([noteGoing(places, name), keepPort(places, name, undefined)]).catch((error: unknown) =>
      log.warn({ err: error, workload: name }, 'that its data goes could not be noted'),
    );
  }

  /** What cannot be written keeps nobody from ending a server, which may be what fills the disk. */
  async #noteEnd(name: string, word: End): Promise<void> {
    const { places, log } = this.#deps;
    this.#ends.set(name, word);
    const status = await readStatus(places, name).catch(() => undefined);
    // One whose start failed is removed by the next run of its name, too.
    if (word === 'removing' && (status === undefined || status.status === 'error')) return;
    await this.record(name)
      .set(word)
      .catch((error: unknown) => log.warn({ err: error, workload: name }, 'its end could not be noted'));
  }

  /** Tells connected clients of all that is hosted: the front door, whose address they are to have, has opened. */
  async tellClients(): Promise<void> {
    const told = [...this.#hosted.keys()].map((name) =>
      this.#inTurn(name, async () => {
        // It may have ended since.
        if (this.#hosted.has(name)) await this.#deps.clients?.there(name);
      }),
    );
    await Promise.all(told);
  }

  /** Resolves when the workload is not hosted any more, for whatever reason. */
  async over(name: string): Promise<void> {
    await this.#hosted.get(name)?.over;
  }

  /**
   * Lets go of everything; the workloads run on. What is hosted already at once, so that an engine that does not answer
   * some other request does not hold it; may never resolve where it is such a request's own turn.
   */
  async release(): Promise<void> {
    this.#ahead.end();
    const letGo = (): Promise<unknown> => Promise.all([...this.#hosted.values()].map((one) => one.release()));
    await Promise.all([letGo(), Promise.allSettled(this.#turns.values())]);
    // What a start that was under way has begun to host since.
    await letGo();
    await this.#ahead.close();
  }

  /** The writer of one workload's status. */
  record(name: string): StatusRecord {
    const known = this.#records.get(name);
    if (known) return known;
    const written = openStatusRecord(name, this.#deps);
    const record = this.#deps.clients?.follow(name, written) ?? written;
    this.#records.set(name, record);
    return record;
  }

  /** Whoever changed a workload that ran when it began must not run one that was stopped since; it is changed all the same. */
  async #refuseStopped(name: string, next: RunConfig): Promise<void> {
    if (!(await this.#wasStopped(name))) return;
    await saveRunConfig(this.#deps.places, next);
    throw endedMeanwhile(name, 'stopped');
  }

  /** Since whoever is to start it read that it should run. */
  async #wasStopped(name: string): Promise<boolean> {
    const status = await readStatus(this.#deps.places, name).catch(() => undefined);
    return this.#ends.has(name) || (status !== undefined && wasEnded(status.status));
  }

  /** Whoever takes it up where this process dies in between finds the one or the other configuration, and nothing that runs. */
  async #makeWay(now: RunConfig, next: RunConfig): Promise<void> {
    const { places, owner, openRuntime } = this.#deps;
    const runtime = await openRuntime(now.runtime);
    await this.record(now.name).set('starting');
    await this.#hosted.get(now.name)?.release();
    if (await inspectOwn(now.name, { runtime, owner })) await runtime.stop(now.name, GRACE_MS);
    await saveRunConfig(places, next);
  }

  async #take(config: RunConfig, request: StartRequest): Promise<Endpoint> {
    const { openRuntime, connectRuntime, openWorkloadLog } = this.#deps;
    const connect = request.how === 'start' ? connectRuntime : openRuntime;
    const runtime = request.runtime ?? (await connect(config.runtime));
    await noteData(config, runtime, this.#deps);
    const file = await openWorkloadLog(config);
    let supervised: Supervised;
    try {
      const status = this.record(config.name);
      supervised = await this.#superviseOnFreePort(config, request, {
        ...this.#deps,
        runtime,
        status,
        overlays: (moved) => overlaysOf(moved, this.#deps.places),
        restarted: () => this.#ahead.begin({ runtime, reference: config.image }),
        ...(request.learns === true ? { learns: true } : {}),
        secrets: async () => request.secrets ?? (await this.#deps.secretsOf(config)),
        log: file.log,
      });
    } catch (error) {
      file.close();
      throw error;
    }
    this.#hosted.set(config.name, supervised);
    this.#began();
    await keepWhatShowed(config, supervised, this.#deps);
    this.#ahead.begin({ runtime, reference: config.image });
    void supervised.over.finally(() => {
      if (this.#hosted.get(config.name) === supervised) this.#hosted.delete(config.name);
      file.close();
    });
    return withHardening(supervised);
  }

  /** Another program may have taken the proxy's port since it was found free. */
  async #superviseOnFreePort(
    config: RunConfig,
    request: StartRequest,
    deps: SuperviseDeps,
  ): Promise<Supervised> {
    let on = config;
    for (let moves = 0; ; moves += 1) {
      try {
        return await supervise(on, request, deps);
      } catch (error) {
        if (!hasCode(error, 'proxy/port-busy')) throw error;
        if (request.movable !== true || moves === MAX_MOVES) throw takenPort(on, error);
        // From the start, because what is made for a workload says its port.
        on = await this.#move(on, request.tell);
      }
    }
  }

  /** The workload with another port for its proxy, saved and told. */
  async #move(config: RunConfig, tell: Tell): Promise<RunConfig> {
    const { places, random } = this.#deps;
    const { name, host } = config;
    const port = await choosePort({ host, promised: () => promisedPorts(places), random });
    await saveRunConfig(places, { ...config, port });
    tell({ kind: 'saved', name, url: workloadUrl({ ...config, port }) });
    return { ...config, port };
  }

  /** What ran before is tried again, so its failure is no end; another engine's workload keeps the status it has. */
  async #recordFailure(name: string, { how, signal, config }: StartRequest, error: unknown): Promise<void> {
    if (hasCode(error, 'workload/other-engine')) return;
    const comesBack = how === 'resume' || (config !== undefined && isUnreachable(error));
    // The process ends, and the next supervisor takes it up.
    if (comesBack && signal.aborted) return;
    const why = whyStopped(error);
    if (why !== undefined) return this.record(name).set('policy_stopped', why);
    const reason = error instanceof SkepError ? error.message : 'internal error';
    await this.record(name).set(comesBack ? 'unhealthy' : 'error', reason);
  }

  #endStarts(name: string, what: 'stopped' | 'removed' | 'changed'): void {
    for (const start of this.#starts.get(name) ?? []) start.abort(endedMeanwhile(name, what));
  }

  #inTurn<T>(name: string, action: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before.then(action, action);
    this.#turns.set(name, turn);
    const done = (): void => {
      if (this.#turns.get(name) === turn) this.#turns.delete(name);
    };
    turn.then(done, done);
    return turn;
  }
}
