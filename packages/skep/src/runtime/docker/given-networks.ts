import type { Observed, WorkloadSpec } from '../runtime.ts';
import { hasOwnNetwork, type Connection } from './container-body.ts';
import type { Place } from './create-workload.ts';
import { endpointText } from './endpoint.ts';
import type { GatewayMaker } from './gateway/gateway-image.ts';
import { isolate } from './gateway/isolated-workload.ts';
import { ISOLATION_LABEL, NETWORK_LABEL, OWNER_LABEL } from './labels.ts';
import { spareOf } from './network/holder.ts';
import { removeUnused } from './network/left-networks.ts';
import { makeSpare, takeSpare } from './network/spare-network.ts';
import { makeNetwork, type NetworkMaker } from './network/workload-networks.ts';

/** Asks an engine who it is, and fails for an answer that cannot be read. */
type Describe = (signal: AbortSignal) => Promise<unknown>;

/** Which networks the workloads of one engine get from this process, and what it makes ahead of them. */
export class GivenNetworks {
  readonly #maker: NetworkMaker & GatewayMaker;
  readonly #describe: Describe;
  /** How the last workload with a network of its own came to that, as the next one may; of one that was only seen it is a guess. */
  #gave: 'opened' | 'joined' | undefined;
  /** Those made ahead, by the workloads that were seen on them. */
  readonly #had: Map<string, string>;

  constructor(maker: NetworkMaker & GatewayMaker, describe: Describe) {
    this.#maker = maker;
    this.#describe = describe;
    this.#had = maker.environment.spares?.had ?? new Map();
  }

  /** Where a workload that is to be made gets its network. */
  place(spec: WorkloadSpec): Place {
    if (!hasOwnNetwork(spec)) return { network: Promise.resolve(undefined) };
    if (spec.isolation !== undefined) return { network: isolate(this.#maker, spec, spec.isolation) };
    // One that joins the network of another container cannot publish ports.
    const joins = spec.ports.length === 0;
    this.#gave = joins ? 'joined' : 'opened';
    const { client, environment } = this.#maker;
    const owner = spec.labels[OWNER_LABEL] ?? '';
    const make = (): Promise<Connection> =>
      makeNetwork(this.#maker, { name: spec.name, owner, kind: 'outward' });
    if (environment.spares === undefined || owner !== environment.owner) return { network: make() };
    const { coming, spare } = takeSpare(client, environment.spares, joins);
    return { coming, network: spare.then(async (taken) => taken ?? make()) };
  }

  /** What was placed is with its workload, or that was not made. */
  async settle({ network }: Place, isMade: boolean): Promise<void> {
    const placed = await network.catch(() => undefined);
    if (placed) this.#maker.environment.spares?.arrived(placed.id, isMade);
  }

  /** A workload is there; a command may have made it for this process. */
  see({ name, labels }: Observed): void {
    if (labels[OWNER_LABEL] !== this.#maker.environment.owner) return;
    if (labels[NETWORK_LABEL] !== undefined && labels[ISOLATION_LABEL] !== 'true') this.#gave ??= 'joined';
    const spare = spareOf(labels);
    if (spare === undefined) this.#had.delete(this.#key(name));
    else this.#had.set(this.#key(name), spare);
  }

  #key(workload: string): string {
    return `${endpointText(this.#maker.client.endpoint)} ${workload}`;
  }

  /**
   * Behind a workload that was removed, by whomever: what it had, unless that is used, or `removed` already. What cannot be
   * removed now goes later.
   */
  async clearBehind(name: string, removed?: string): Promise<void> {
    const left = this.#had.get(this.#key(name));
    this.#had.delete(this.#key(name));
    if (left === undefined || left === removed) return;
    const { client, environment } = this.#maker;
    const removing = removeUnused(client, [{ id: left, name: left }]);
    await removing.catch(() => environment.spares?.lookAgain());
  }

  /** See `Runtime.makeAhead`. */
  async makeAhead(signal?: AbortSignal, asked?: () => void): Promise<void> {
    const { spares, owner } = this.#maker.environment;
    if (spares) await makeSpare({ ...this.#maker, signal, asked }, spares, owner);
  }

  /** See `Runtime.makeSpare`. */
  async makeSpare(failed?: (error: unknown) => void): Promise<void> {
    const { spares, owner } = this.#maker.environment;
    if (this.#gave === undefined || spares === undefined) return;
    const holds = this.#gave === 'joined';
    await makeSpare({ ...this.#maker, describe: this.#describe, holds, failed }, spares, owner);
  }
}
