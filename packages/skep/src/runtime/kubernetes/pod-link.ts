import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { addressOf } from '@skep/core/cluster/ask-cluster.ts';
import { clusterAccess, type ClusterPlace } from '@skep/core/cluster/cluster-access.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { CHANNEL_PROTOCOL, ChannelStream, type Channels } from './channel-stream.ts';
import type { ClusterApi } from './cluster-api.ts';
import { clusterFailure } from './failure.ts';
import { objectNames } from './names.ts';
import { CONTAINER } from './objects.ts';
import { openWebSocket } from './web-socket.ts';

/** How long a pod that runs is tried to be attached to, and how long between two tries. Milliseconds. */
const ATTACH_MS = 90_000;
const AGAIN_MS = 500;

export interface PodLinks {
  readonly api: ClusterApi;
  readonly place: ClusterPlace;
  readonly clock: Clock;
  /** This process runs in a pod of the cluster, so that it reaches Services. */
  readonly isInside: boolean;
}

/**
 * stdin and stdout of a pod's container as one stream, tried for 90 s: a kubelet may not know yet of what runs there. Fails
 * with `runtime/*`; `goesOn` says whether it is of any use to try again.
 */
export async function attachToPod(
  links: PodLinks,
  name: string,
  { signal, goesOn }: { readonly signal: AbortSignal; readonly goesOn: () => Promise<boolean> },
): Promise<Duplex> {
  const { api, clock } = links;
  const query = { container: CONTAINER, stdin: 'true', stdout: 'true', stderr: 'false', tty: 'false' };
  const end = clock.elapsed() + ATTACH_MS;
  for (;;) {
    try {
      return await dial(
        links,
        { path: api.podPath(objectNames(name).pod, 'attach'), query },
        { to: 0, from: 1 },
        signal,
      );
    } catch (error) {
      const asked = {
        verb: 'create',
        resource: 'pods/attach',
        name: objectNames(name).pod,
        namespace: api.namespace,
      };
      const told = clusterFailure(error, asked, signal);
      const isFinal = [401, 403].includes(statusOf(error) ?? 0) || signal.aborted || clock.elapsed() > end;
      if (isFinal || !(await goesOn())) throw told;
    }
    await clock.sleep(AGAIN_MS, signal);
  }
}

/** A connection to a port of a workload: through its Service where that can be reached, else through the API server. */
export function connectToPod(links: PodLinks, name: string, port: number): Promise<Duplex> {
  const { api, isInside } = links;
  if (isInside) return Promise.resolve(connect(port, `${objectNames(name).service}.${api.namespace}.svc`));
  const question = {
    path: api.podPath(objectNames(name).pod, 'portforward'),
    query: { ports: String(port) },
  };
  // Each channel begins with the number of the port.
  return dial(links, question, { to: 0, from: 0, skip: 2 }, new AbortController().signal);
}

async function dial(
  { place }: PodLinks,
  question: Parameters<typeof addressOf>[1],
  channels: Channels,
  signal: AbortSignal,
): Promise<Duplex> {
  const access = await clusterAccess(place);
  const url = addressOf(access, question);
  const link = await openWebSocket({ url, access, protocol: CHANNEL_PROTOCOL, signal });
  if (!signal.aborted) return new ChannelStream(link, channels);
  link.close();
  throw new SkepError('runtime/aborted', { cause: signal.reason });
}
