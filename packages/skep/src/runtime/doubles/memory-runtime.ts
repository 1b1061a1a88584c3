import { EventEmitter, on } from 'node:events';
import { SkepError } from '@skep/core/errors/skep-error.ts';
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
import type { Decision } from '../../egress/decision.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { RuntimeKind } from '../../settings/identity.ts';
import { checkWorkloadName } from '../workload-name.ts';
import { idle, type MemoryProgram } from './program.ts';
import { MemoryWorkload } from './workload.ts';

export interface MemoryCrash {
  readonly exitCode: number;
  readonly says: string;
}

/**
 * A runtime in memory, for tests of what hosts workloads. It passes the contract of all runtimes but for the parts that
 * need something outside this process. Its servers are the given programs, by reference.
 */
export class MemoryRuntime implements Runtime {
  readonly kind: RuntimeKind;
  readonly runsImages: boolean;
  readonly reachesLoopback = false;
  readonly keepsFiles = false;
  readonly limitsHeldBy = 'a test';
  readonly keepsSecrets: boolean = true;
  timesLogs = true;
  readonly #programs: Map<string, MemoryProgram>;
  readonly #workloads = new Map<string, MemoryWorkload>();
  readonly #news = new EventEmitter();
  #time = 0;
  readonly discarded: string[] = [];
  /** Every request to prepare something. */
  readonly prepared: PrepareRequest[] = [];
  /** What was to be kept of what is not used, for each sweep. */
  readonly swept: (readonly string[])[] = [];
  /** The variables that servers were started with last, secret ones among them. */
  readonly environments = new Map<string, Readonly<Record<string, string>>>();
  readonly #specs = new Map<string, WorkloadSpec>();
  /** Workloads whose image was built anew. */
  readonly outdated = new Set<string>();
  /** Workloads whose server has written files. */
  readonly writing = new Set<string>();
  /** Newest versions of packages. */
  readonly versions = new Map<string, string>();
  /** Names of workloads that kept something. */
  readonly holding = new Set<string>();
  /** Names of shared volumes in which something is. */
  readonly volumes = new Set<string>();
  /** Workloads whose start was cut short. */
  readonly interrupted = new Set<string>();
  /** What gateways of isolated workloads decided, by workload. */
  readonly decisions = new Map<string, readonly Decision[]>();
  /** What workloads that learn did with files. */
  readonly files = new Map<string, SeenFiles>();
  /** Workloads that it cannot make. */
  refuses: (spec: WorkloadSpec) => boolean = () => false;
  /** How servers crash as soon as they are started. */
  crash: MemoryCrash | undefined;
  /** Which workloads crash so, by what they were made from. */
  crashOf: (spec: WorkloadSpec) => MemoryCrash | undefined = () => undefined;
  /** Images begin their servers as root, or as somebody; undefined where that is of no matter. */
  asRoot: boolean | undefined;
  unreachable = false;
  /** It cannot reach its image registry. */
  alone = false;

  constructor(
    programs: Readonly<Record<string, MemoryProgram>> = { 'fake:1': idle },
    kind: RuntimeKind = 'docker',
  ) {
    this.kind = kind;
    this.runsImages = kind === 'docker';
    this.#programs = new Map(Object.entries(programs));
  }

  async probe(): Promise<RuntimeInfo> {
    this.#reachable();
    return { kind: this.kind, id: 'fake', version: '1', endpoint: 'memory' };
  }

  async prepare(request: PrepareRequest): Promise<Prepared> {
    this.#reachable();
    this.prepared.push(request);
    const { source, report, signal } = request;
    if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
    const version = source.kind === 'image' ? undefined : (source.version ?? this.versions.get(source.name));
    const versioned = source.kind === 'image' ? source.reference : `${source.name}@${version ?? ''}`;
    const reference = source.kind === 'image' || this.#programs.has(versioned) ? versioned : source.name;
    if (this.alone) {
      report.step(`Pulling ${reference}`);
      const detail = { unreached: true };
      throw new SkepError('runtime/image-not-found', {
        message: 'no such host',
        hint: 'check the network',
        detail,
      });
    }
    if (!this.#programs.has(reference)) {
      report.step(`Pulling ${reference}`);
      throw new SkepError('runtime/image-not-found', { message: `nothing is known as "${reference}"` });
    }
    return {
      reference,
      ours: source.kind === 'package',
      exposedPorts: [],
      ...(version === undefined ? {} : { version }),
      ...(this.asRoot === undefined || source.kind === 'package' ? {} : { asRoot: this.asRoot }),
    };
  }

  async cautions(): Promise<readonly string[]> {
    return [];
  }

  async has(reference: string): Promise<boolean> {
    this.#reachable();
    return this.#programs.has(reference);
  }

  async newest({ name }: PackageSource): Promise<string | undefined> {
    return this.versions.get(name);
  }

  async pin({ reference }: Pick<WorkloadSpec, 'reference'>): Promise<string> {
    return reference;
  }

  /** Remembers the wish; the programs stay. */
  async discard(reference: string): Promise<void> {
    this.discarded.push(reference);
  }

  /** Nothing here outlives an interruption. */
  async sweep(keep: readonly string[] = []): Promise<void> {
    this.#reachable();
    this.swept.push(keep);
  }

  /** Only names what it is asked for. */
  async dockerfile({ source }: PrepareRequest): Promise<string> {
    return `# ${JSON.stringify(source)}\n`;
  }

  dataPlaces({
    name,
    data = [],
    volumes = [],
  }: Pick<WorkloadSpec, 'name' | 'data' | 'volumes'>): readonly string[] {
    return [
      ...data.map((target) => `memory of ${name}${target}`),
      ...volumes.map(({ volume }) => `shared memory ${volume}`),
    ];
  }

  async holdsData(name: string, _owner: string, volumes: readonly string[] = []): Promise<boolean> {
    this.#reachable();
    return this.holding.has(name) || volumes.some((one) => this.volumes.has(one));
  }

  async removeData(name: string, _owner: string, volumes: readonly string[] = []): Promise<void> {
    this.#reachable();
    this.holding.delete(name);
    for (const one of volumes) this.volumes.delete(one);
  }

  async create(spec: WorkloadSpec): Promise<void> {
    this.#reachable();
    checkWorkloadName(spec.name);
    if (this.refuses(spec)) throw new SkepError('runtime/invalid-workload', { message: 'it cannot be made' });
    if (this.#workloads.has(spec.name)) {
      throw new SkepError('runtime/name-taken', { message: `"${spec.name}" exists already` });
    }
    const program = this.#programs.get(spec.reference);
    if (!program) {
      throw new SkepError('runtime/image-not-found', { message: `"${spec.reference}" is not here` });
    }
    this.#workloads.set(spec.name, new MemoryWorkload({ spec, program, now: () => this.#now() }));
    this.#specs.set(spec.name, spec);
  }

  /** Its servers write nothing. */
  async replace(spec: WorkloadSpec): Promise<boolean> {
    await this.remove(spec.name);
    await this.create(spec);
    return !this.writing.has(spec.name);
  }

  async isCurrent(name: string): Promise<boolean> {
    this.#reachable();
    return !this.outdated.has(name);
  }

  async start(name: string): Promise<void> {
    this.#reachable();
    const workload = this.#get(name);
    if (workload.running) return;
    const { env = {}, secretEnv } = this.#specs.get(name) ?? {};
    this.environments.set(name, { ...env, ...secretEnv });
    workload.start();
    this.#tell(name, 'start');
    void workload.wait(new AbortController().signal).then(() => this.#tell(name, 'exit'));
    const spec = this.#specs.get(name);
    const crash = this.crash ?? (spec && this.crashOf(spec));
    if (crash === undefined) return;
    workload.say(crash.says);
    workload.end(crash.exitCode);
  }

  async attach(name: string): Promise<Attachment> {
    this.#reachable();
    const workload = this.#get(name);
    if (!workload.over) return workload.attach();
    throw new SkepError('runtime/not-running', { message: `workload "${name}" is not running` });
  }

  async wait(name: string, signal: AbortSignal): Promise<number> {
    return this.#get(name).wait(signal);
  }

  async stop(name: string): Promise<void> {
    this.#reachable();
    this.#workloads.get(name)?.stop();
  }

  async remove(name: string): Promise<void> {
    this.interrupted.delete(name);
    this.#reachable();
    const workload = this.#workloads.get(name);
    if (!workload) return;
    workload.stop();
    this.#workloads.delete(name);
    // After the exit, which is told in a later turn.
    setImmediate(() => this.#tell(name, 'remove'));
  }

  async inspect(name: string): Promise<Observed | undefined> {
    this.#reachable();
    const seen = this.#workloads.get(name)?.observe();
    return seen && this.interrupted.has(name) ? { ...seen, interrupted: true } : seen;
  }

  async list(): Promise<readonly Observed[]> {
    this.#reachable();
    return [...this.#workloads.values()].map((workload) => workload.observe());
  }

  async traffic(name: string): Promise<readonly Decision[]> {
    this.#reachable();
    if (this.#specs.get(name)?.isolation === undefined) return [];
    return this.decisions.get(name) ?? [];
  }

  async seen(name: string): Promise<SeenFiles> {
    const isWatched = this.#specs.get(name)?.learns === true;
    const nothing = { paths: new Map(), complete: isWatched, unseen: isWatched ? [] : ['nobody watched it'] };
    return (isWatched ? this.files.get(name) : undefined) ?? nothing;
  }

  /** What a workload was created from last. */
  specOf(name: string): WorkloadSpec | undefined {
    return this.#specs.get(name);
  }

  async *logs(name: string, request: LogRequest): AsyncGenerator<LogChunk> {
    yield* this.#get(name).logs(request);
  }

  async *events(signal: AbortSignal): AsyncGenerator<RuntimeEvent> {
    try {
      for await (const [event] of on(this.#news, 'event', { signal })) yield event as RuntimeEvent;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** The server of that name ends. */
  end(name: string, exitCode: number): void {
    this.#get(name).end(exitCode);
  }

  /** How often it was started; 0 when it does not exist. */
  startsOf(name: string): number {
    return this.#workloads.get(name)?.starts ?? 0;
  }

  #tell(name: string, action: RuntimeEvent['action']): void {
    this.#news.emit('event', { name, action } satisfies RuntimeEvent);
  }

  #now(): Date {
    this.#time += 1;
    return new Date(this.#time);
  }

  #get(name: string): MemoryWorkload {
    const workload = this.#workloads.get(name);
    if (workload) return workload;
    throw new SkepError('runtime/no-such-workload', { message: `no workload "${name}"` });
  }

  #reachable(): void {
    if (this.unreachable) {
      throw new SkepError('runtime/engine-unreachable', { message: 'the engine in memory is down' });
    }
  }
}
