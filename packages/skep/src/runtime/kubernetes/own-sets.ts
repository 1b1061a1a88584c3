import { isIP } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';
import type { PortBinding } from '../runtime.ts';
import { noSuchWorkload } from '../workload-name.ts';
import type { ClusterApi, Members, ObjectRef } from './cluster-api.ts';
import { isConflict } from './failure.ts';
import { isWhose, type Whose } from './place-objects.ts';
import { setFacts, type SetFacts } from './pod-life.ts';

export const setRef = (name: string): ObjectRef => ({ kind: 'StatefulSet', name });

/** How often a change is tried anew that met another one. */
export const TRIES = 5;

/** The StatefulSets of one Skep, and which descriptions of them are this process's (decision 0402). */
export class OwnSets {
  readonly #api: ClusterApi;
  readonly #owner: string;
  /** The descriptions that this process has made or hosts, by their generation: what others made later is theirs. */
  readonly #generations = new Map<string, number>();
  /** The ports that those of them have which this process made. */
  readonly #ports = new Map<string, readonly PortBinding[]>();

  constructor(api: ClusterApi, owner: string) {
    this.#api = api;
    this.#owner = owner;
  }

  whose(name: string): Whose {
    return { name, owner: this.#owner };
  }

  /** From now on a later description of it is somebody else's; `ports` are those that this process described. */
  remember(name: string, generation: number, ports?: readonly PortBinding[]): void {
    this.#generations.set(name, generation);
    if (ports !== undefined) this.#ports.set(name, ports);
  }

  /**
   * Where this machine listens for a workload. Whoever may write into the cluster may have written its ports, so of what
   * this process did not describe itself only addresses count that this machine alone reaches.
   */
  hostPorts({ name, ports }: SetFacts): readonly PortBinding[] {
    const own =
      this.#ports.get(name) ?? ports.filter(({ hostIp }) => isIP(hostIp) !== 0 && isLoopback(hostIp));
    return own.filter(({ hostPort }) => hostPort > 0);
  }

  knows(name: string): boolean {
    return this.#generations.has(name);
  }

  forget(name: string): void {
    this.#generations.delete(name);
    this.#ports.delete(name);
  }

  /** Undefined also for what somebody else made: there is no workload of ours, then. */
  async own(name: string, signal?: AbortSignal): Promise<SetFacts | undefined> {
    const set = await this.#api.get(setRef(name), signal);
    return set !== undefined && isWhose(set, this.whose(name)) ? setFacts(set) : undefined;
  }

  /** Fails with `runtime/no-such-workload`, and where a later run has described it anew. */
  async there(name: string, signal?: AbortSignal): Promise<SetFacts> {
    const set = await this.own(name, signal);
    if (set === undefined) throw noSuchWorkload(name);
    this.checkLatest(set);
    return set;
  }

  checkLatest({ name, generation }: SetFacts): void {
    const known = this.#generations.get(name);
    if (known === undefined || generation <= known) return;
    throw new SkepError('runtime/engine-refused', {
      message: `a later run has taken over "${name}" in the cluster`,
      hint: 'end this one, or remove the workload and run it again',
    });
  }

  /** Writes into the latest version of the StatefulSet, unless a later run has described it. */
  async mark(
    name: string,
    annotations: Readonly<Record<string, unknown>>,
    rest: Members = {},
  ): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const { resourceVersion } = await this.there(name);
      try {
        await this.#api.merge(setRef(name), resourceVersion, { metadata: { annotations }, ...rest });
        return;
      } catch (error) {
        if (!isConflict(error) || tries === TRIES) throw error;
      }
    }
  }
}
