import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Prepared, Report, Runtime, Source, WorkloadSpec } from '../runtime.ts';
import { ProbeCaller } from './probe-caller.ts';

/** What an adapter brings to be tested. */
export interface ContractHarness {
  /** Opens the adapter; called once. */
  open(): Promise<Runtime>;
  /** Makes the probe server available and returns its reference. */
  probeServer(runtime: Runtime): Promise<string>;
  /** Something that does not exist, and the code that says so. */
  readonly missing: { readonly source: Source; readonly code: string };
  /** Packages that this machine can fetch, a kind each, whose server answers `initialize`; absent for an adapter that fetches none. */
  readonly packages?: readonly ContractPackage[];
  /**
   * Creates, attaches and starts in a process of its own, which prints a line when the workload answers. Undefined for
   * an adapter with nothing outside this process: it offers neither outliving nor confinement nor a network.
   */
  readonly hold: ((spec: WorkloadSpec) => ChildProcess) | undefined;
  /** Keeps `WorkloadSpec.isolation`. */
  readonly isolates?: true;
  /** What an engine does not do that others do, for a reason outside of the adapter. */
  readonly lacks?: readonly Lack[];
  /** The number of the user that the engine runs as, where that is another one than who runs the tests. */
  readonly owner?: number;
  /** Everything of ours that exists outside the port: containers, networks, processes, directories. */
  leftovers(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/**
 * `input`: what a server reads ends when its client goes. `told-memory`: nobody says that a server used too much memory.
 * `limits`: it holds none, which its `cautions` tell. `local-images`: nobody knows which are there before one is needed.
 * `logs-of-stopped`: what a server wrote goes when it is stopped.
 */
export type Lack = 'input' | 'told-memory' | 'limits' | 'local-images' | 'logs-of-stopped';

export interface ContractPackage {
  /** The scheme. */
  readonly what: string;
  /** Fetches it from a registry of the test's own, or finds it again. */
  readonly fetch: (signal: AbortSignal) => Promise<Prepared>;
}

/** A user without an entry. */
const SOMEBODY = 54_321;

export const forever = () => new AbortController().signal;
export const silent: Report = { step() {}, detail() {} };

/** One adapter under test with the workloads of the current test, which `clear` removes. */
export class ContractBench {
  readonly harness: ContractHarness;
  readonly #names: string[] = [];
  #opened: { runtime: Runtime; reference: string; directory: string } | undefined;

  constructor(harness: ContractHarness) {
    this.harness = harness;
  }

  get runtime(): Runtime {
    return this.#open.runtime;
  }

  /** The probe server. */
  get reference(): string {
    return this.#open.reference;
  }

  /** A directory of the test's own on this machine. */
  get directory(): string {
    return this.#open.directory;
  }

  get #open() {
    if (!this.#opened) throw new TypeError('the bench is not open');
    return this.#opened;
  }

  lacks(what: Lack): boolean {
    return this.harness.lacks?.includes(what) === true;
  }

  /** See `ContractHarness.hold`. */
  hold(spec: WorkloadSpec): ChildProcess {
    if (!this.harness.hold) throw new TypeError('this adapter has nothing outside this process');
    return this.harness.hold(spec);
  }

  async open(): Promise<void> {
    const runtime = await this.harness.open();
    const reference = await this.harness.probeServer(runtime);
    const directory = await mkdtemp(path.join(tmpdir(), 'skep-contract-'));
    this.#opened = { runtime, reference, directory };
    await this.#own(directory);
  }

  async close(): Promise<void> {
    if (this.#opened) await rm(this.#opened.directory, { recursive: true, force: true });
    await this.harness.close();
  }

  async clear(): Promise<void> {
    for (const name of this.#names.splice(0)) await this.runtime.remove(name);
  }

  /** A directory below the test's own that a server may be given, with that name at the start of its own. */
  async folder(name: string): Promise<string> {
    const made = await mkdtemp(path.join(this.directory, name));
    // In the sandbox a server that root starts is the owner of what it is given, but never root.
    if (this.runtime.kind === 'sandbox' && process.getuid?.() === 0) await chown(made, SOMEBODY, SOMEBODY);
    await this.#own(made);
    return made;
  }

  async #own(made: string): Promise<void> {
    const { owner } = this.harness;
    if (owner !== undefined) await chown(made, owner, owner);
  }

  /** A workload of a fresh name that runs the probe server without a network. */
  spec(changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
    const name = `contract-${randomBytes(4).toString('hex')}`;
    this.#names.push(name);
    const base = { name, reference: this.reference, args: [], env: {}, mounts: [], ports: [] };
    return {
      ...base,
      labels: { 'skep.test': 'contract' },
      stdio: true,
      network: 'none',
      privileged: false,
      ...changes,
    };
  }

  /** Creates, attaches and starts. */
  async attached(changes: Partial<WorkloadSpec> = {}): Promise<{ name: string; probe: ProbeCaller }> {
    const wanted = this.spec(changes);
    await this.runtime.create(wanted);
    const probe = new ProbeCaller(await this.runtime.attach(wanted.name));
    await this.runtime.start(wanted.name);
    return { name: wanted.name, probe };
  }

  /** The same, and waits for the first answer. */
  async running(changes: Partial<WorkloadSpec> = {}): Promise<{ name: string; probe: ProbeCaller }> {
    const started = await this.attached(changes);
    await started.probe.call('ping');
    return started;
  }
}
