import { existsSync } from 'node:fs';
import { realpath, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { Spare } from '../spares.ts';
import type { Bubblewrap } from './confine.ts';
import { openNetwork, type Opening } from './open-network.ts';
import { scratchDirectory } from './own-directories.ts';
import { ownNetworkOf } from './own-network.ts';
import { isHeld, makePipes } from './pipes.ts';
import { workloadPlaces, workloadsDirectory } from './places.ts';
import { encodeSpec } from './records.ts';

/** Among all that a process makes ahead. */
const KEY = 'sandbox';

/**
 * What a start begins with whatever is started: the directory of a workload with its pipes, and a network of its own that
 * is connected.
 */
class SpareDirectory implements Spare {
  readonly id: string;
  readonly name: string;
  /** Connected; whoever takes this disposes of it. */
  readonly opening: Opening;

  constructor(directory: string, opening: Opening) {
    this.id = directory;
    this.name = path.basename(directory);
    this.opening = opening;
  }

  /** False once somebody has removed the directory, or ended what connects the network. */
  isWhole(): boolean {
    try {
      return existsSync(this.id) && isHeld(workloadPlaces(this.id).gate);
    } catch {
      // It cannot be told, for want of descriptors perhaps.
      return false;
    }
  }

  readonly remove = async (): Promise<void> => {
    await this.opening[Symbol.asyncDispose]();
    await rm(this.id, { recursive: true, force: true });
  };
}

/** Makes the directories of workloads, and has one ready for the next (decision 0379). */
export class WorkloadDirectories {
  readonly #environment: RuntimeEnvironment;
  readonly #bubblewrap: Bubblewrap;
  /** Networks, made ahead, of workloads that have not started yet. */
  readonly #ahead = new Map<string, Opening>();
  #hasUsual = false;

  constructor(environment: RuntimeEnvironment, bubblewrap: Bubblewrap) {
    this.#environment = environment;
    this.#bubblewrap = bubblewrap;
  }

  /** Makes one with the description in it, whole or not at all. Fails with `runtime/name-taken`. */
  async make(spec: WorkloadSpec): Promise<void> {
    const environment = this.#environment;
    const root = workloadsDirectory(environment);
    const isUsual = spec.stdio && ownNetworkOf(spec, this.#bubblewrap.network)?.kind === 'connected';
    this.#hasUsual ||= isUsual;
    const spare = isUsual ? await takeSpare(environment) : undefined;
    const draft = spare?.id ?? (await scratchDirectory(root, environment));
    try {
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
    if (spare) this.#ahead.set(spec.name, spare.opening);
  }

  /** The network that was made ahead of this workload, for its caller to use and to dispose of. */
  take(name: string): Opening | undefined {
    const opening = this.#ahead.get(name);
    this.#ahead.delete(name);
    return opening;
  }

  /** Disposes of it, where there is one. Idempotent. */
  async drop(name: string): Promise<void> {
    await this.take(name)?.[Symbol.asyncDispose]();
  }

  /** Makes what the next one begins with, where one that could use it was made here. Fails with `runtime/start-failed`. */
  async makeSpare(): Promise<void> {
    if (this.#hasUsual) await this.#environment.spares?.make(KEY, () => this.#spare());
  }

  async #spare(): Promise<Spare> {
    const [environment, bubblewrap] = [this.#environment, this.#bubblewrap];
    const directory = await scratchDirectory(workloadsDirectory(environment), environment);
    const places = workloadPlaces(directory);
    const node = await realpath(environment.execPath);
    const network = ownNetworkOf({ name: path.basename(directory), network: 'bridge' }, bubblewrap.network);
    const pipes = makePipes(places, true);
    const opening = openNetwork({ bubblewrap, network, node, places, ports: [], pipes });
    const spare = new SpareDirectory(directory, opening);
    try {
      await opening.connected;
      return spare;
    } catch (error) {
      await giveUp(spare);
      throw error;
    }
  }
}

/** What cannot be removed lies where the next process looks, and is no reason to fail, or to fail for. */
async function giveUp(spare: Spare): Promise<void> {
  await spare.remove().catch(() => {});
}

async function takeSpare({ spares }: RuntimeEnvironment): Promise<SpareDirectory | undefined> {
  const spare = await spares?.take(KEY);
  if (!(spare instanceof SpareDirectory)) return undefined;
  if (spare.isWhole()) return spare;
  await giveUp(spare);
  return undefined;
}
