import { closeSync, constants, openSync } from 'node:fs';
import type { PortBinding } from '../runtime.ts';
import type { Bubblewrap } from './confine.ts';
import { openGateway } from './gateway.ts';
import { makeNetwork, type OwnNetwork } from './own-network.ts';
import type { Gate, WorkloadPlaces } from './places.ts';
import { connectNetwork } from './slirp.ts';

export interface Wanted {
  readonly bubblewrap: Bubblewrap;
  /** Undefined for none of its own. */
  readonly network: OwnNetwork | undefined;
  /** Real path of the Node binary. */
  readonly node: string;
  readonly places: WorkloadPlaces;
  readonly ports: readonly PortBinding[];
  /** Resolves when the pipes of the workload are there. */
  readonly pipes: Promise<void>;
}

/**
 * The network of its own of a workload that is about to start. Disposed of when the workload is in it, or was not started:
 * from then on it lasts as long as the workload.
 */
export interface Opening extends AsyncDisposable {
  /** A process that is in it, once it is made; undefined where there is none. Rejects with `runtime/start-failed`. */
  readonly made: Promise<number | undefined>;
  /** Resolves when it leads where it is to lead, with what `openGateway` and `connectNetwork` answer. Rejects with `runtime/start-failed`. */
  readonly connected: Promise<readonly Gate[]>;
}

/** Begins to make and connect the network of a workload, which takes as long as all else that a start needs. */
export function openNetwork({ network, pipes, ...wanted }: Wanted): Opening {
  if (network === undefined) {
    return {
      made: Promise.resolve(undefined),
      connected: Promise.resolve([]),
      async [Symbol.asyncDispose]() {},
    };
  }
  const { inherited, setpriv } = wanted.bubblewrap;
  const asRoot = setpriv !== undefined;
  const making = makeNetwork(network.tools, { asRoot, kind: network.kind, inherited });
  const made = making.then(({ pid }) => pid);
  // What serves it ends with whatever holds this pipe: until the workload does, this program.
  const life = pipes.then(() => openSync(wanted.places.life, constants.O_RDWR));
  const connected = life.then(() => connect({ ...wanted, network, made, asRoot }));
  // Who starts the workload hears of it when it comes to that.
  for (const one of [made, connected]) one.catch(() => {});
  return {
    made,
    connected,
    async [Symbol.asyncDispose]() {
      // All is over before the workload may be removed.
      const [held, opened] = await Promise.allSettled([making, life, connected]);
      if (held.status === 'fulfilled') held.value[Symbol.dispose]();
      if (opened.status === 'fulfilled') closeSync(opened.value);
    },
  };
}

interface Connecting extends Omit<Wanted, 'pipes'> {
  readonly network: OwnNetwork;
  readonly made: Promise<number>;
  readonly asRoot: boolean;
}

async function connect({ network, made, asRoot, ...wanted }: Connecting): Promise<readonly Gate[]> {
  if (network.kind === 'gated') return openGateway({ ...wanted, network, made });
  const { places, bubblewrap } = wanted;
  const { tools, slirp } = network;
  return connectNetwork({ tools, slirp, asRoot, places, pid: await made, inherited: bubblewrap.inherited });
}
