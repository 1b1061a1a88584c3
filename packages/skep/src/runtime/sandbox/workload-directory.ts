import { existsSync } from 'node:fs';
import { realpath, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { Spare } from '../spares.ts';
import type { Bubblewrap } from './confine.ts';
import { openLogPipe, type LogPipe } from './log-pipe.ts';
import { openNetwork, type Opening } from './open-network.ts';
import { scratchDirectory } from './own-directories.ts';
import { ownNetworkOf } from './own-network.ts';
import { copyAhead, dropOtherCopy } from './package-copy.ts';
import { isHeld, makePipes } from './pipes.ts';
import { treeOf, workloadPlaces, workloadsDirectory } from './places.ts';
import { readyDirectory } from './ready-directory.ts';
import { encodeSpec } from './records.ts';

/** Among all that a process makes ahead. */
const KEY = 'sandbox';

/** What was begun for a workload that has not started yet. Disposed of by whoever has taken it. */
export interface Begun extends AsyncDisposable {
  /** Of a network that is connected. */
  readonly opening: Opening;
  readonly log: LogPipe;
}

/**
 * What a start begins with whatever is started: the directory of a workload with its pipes, what writes its log, and a
 * network of its own that is connected; and a copy of the package that was started last.
 */
class SpareDirectory implements Spare, Begun {
  readonly id: string;
  readonly name: string;
  readonly opening: Opening;
  readonly log: LogPipe;

  constructor(directory: string, opening: Opening, log: LogPipe) {
    this.id = directory;
    this.name = path.basename(directory);
    this.opening = opening;
    this.log = log;
  }

  /** False once somebody has removed the directory, or ended what connects the network or writes the log. */
  isWhole(): boolean {
    try {
      const { keeper } = this.log;
      const isLogged = keeper !== undefined && existsSync(`/proc/${keeper}`);
      return existsSync(this.id) && isHeld(workloadPlaces(this.id).gate) && isLogged;
    } catch {
      // It cannot be told, for want of descriptors perhaps.
      return false;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.log[Symbol.dispose]();
    await this.opening[Symbol.asyncDispose]();
  }

  readonly remove = async (): Promise<void> => {
    await this[Symbol.asyncDispose]();
    await rm(this.id, { recursive: true, force: true });
  };
}

/** Makes the directories of workloads, and has one ready for the next (decision 0379). */
export class WorkloadDirectories {
  readonly #environment: RuntimeEnvironment;
  readonly #bubblewrap: Bubblewrap;
  /** By the workload that will have it. */
  readonly #ahead = new Map<string, Begun>();
  /** Reference of the last one made here that could have used what is made ahead. */
  #usual: string | undefined;

  constructor(environment: RuntimeEnvironment, bubblewrap: Bubblewrap) {
    this.#environment = environment;
    this.#bubblewrap = bubblewrap;
  }

  /** Makes one with the description in it, whole or not at all. Fails with `runtime/name-taken`. */
  async make(spec: WorkloadSpec): Promise<void> {
    const environment = this.#environment;
    const root = workloadsDirectory(environment);
    const isUsual = spec.stdio && ownNetworkOf(spec, this.#bubblewrap.network)?.kind === 'connected';
    if (isUsual) this.#usual = spec.reference;
    const spare = isUsual ? await takeSpare(environment) : undefined;
    const ready = readyDirectory(environment, spec.reference);
    const draft = spare?.id ?? (await scratchDirectory(root, environment, ready));
    try {
      if (spare) await dropOtherCopy(workloadPlaces(draft), treeOf(environment, spec.reference));
      const text = encodeSpec({ spec, createdAt: new Date() });
      await writeFile(workloadPlaces(draft).spec, text, { mode: 0o600 });
      await rename(draft, path.join(root, spec.name));
    } catch (error) {
      await (spare ? giveUp(spare) : rm(draft, { recursive: true, force: true }));
      if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') throw error;
      throw new SkepError('runtime/name-taken', {
        message: `a workload named "${spec.name}" exists already`,
      });
    }
    if (spare) this.#ahead.set(spec.name, spare);
  }

  /** What was made ahead of this workload, for its caller to use and to dispose of. */
  take(name: string): Begun | undefined {
    const begun = this.#ahead.get(name);
    this.#ahead.delete(name);
    return begun;
  }

  /** Disposes of it, where there is one. Idempotent. */
  async drop(name: string): Promise<void> {
    await this.take(name)?.[Symbol.asyncDispose]();
  }

  /** Makes what the next one begins with, where one that could use it was made here. Fails with `runtime/start-failed`. */
  async makeSpare(): Promise<void> {
    const reference = this.#usual;
    if (reference !== undefined) await this.#environment.spares?.make(KEY, () => this.#spare(reference));
  }

  async #spare(reference: string): Promise<Spare> {
    const [environment, bubblewrap] = [this.#environment, this.#bubblewrap];
    const directory = await scratchDirectory(workloadsDirectory(environment), environment);
    const places = workloadPlaces(directory);
    const node = await realpath(environment.execPath);
    const network = ownNetworkOf({ name: path.basename(directory), network: 'bridge' }, bubblewrap.network);
    const pipes = makePipes(places, true);
    await using made = new AsyncDisposableStack();
    made.defer(() => rm(directory, { recursive: true, force: true }).catch(() => {}));
    const opening = made.use(openNetwork({ bubblewrap, network, node, places, ports: [], pipes }));
    await pipes;
    const log = made.use(openLogPipe(places, bubblewrap.inherited));
    await copyAhead(environment, reference, places);
    await opening.connected;
    made.move();
    return new SpareDirectory(directory, opening, log);
  }
}

/** What cannot be removed lies where the next process looks, and is no reason to fail, or to fail for. */
async function giveUp(spare: Spare): Promise<void> {
  await spare.remove().catch(() => {});
}

async function takeSpare({ spares }: RuntimeEnvironment): Promise<SpareDirectory | undefined> {
  const spare = await spares?.take(KEY);
  if (spare) spares?.arrived(spare.id, true);
  if (!(spare instanceof SpareDirectory)) return undefined;
  if (spare.isWhole()) return spare;
  await giveUp(spare);
  return undefined;
}
