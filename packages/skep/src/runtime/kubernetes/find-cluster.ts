import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { openAsker } from '@skep/core/cluster/ask-cluster.ts';
import { ACCOUNT_FOLDER, clusterAccess, type ClusterPlace } from '@skep/core/cluster/cluster-access.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { FindRuntime, RuntimeEnvironment } from '../environment.ts';
import { ClusterApi } from './cluster-api.ts';
import { clusterFailure } from './failure.ts';
import { KubernetesRuntime } from './kubernetes-runtime.ts';

const PROBE_MS = 5_000;

type Surroundings = Pick<RuntimeEnvironment, 'env' | 'home'>;

/** Which cluster is meant, by which kubeconfig and context; without one, that in which this process runs. */
export interface ClusterChoice {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
}

/**
 * The cluster of a saved workload, else that of `KUBECONFIG`, that in which this runs, or that of `~/.kube/config`. Where
 * nobody asked for one by name, only a cluster in which this runs counts.
 */
export const findKubernetes: FindRuntime = async (environment, saved, named = false) => {
  const { env, home } = environment;
  const isInside = Boolean(env['KUBERNETES_SERVICE_HOST']);
  const isSaved = saved !== undefined && saved !== '';
  if (!isSaved && !named && !isInside) {
    return {
      refusals: [
        { strategy: 'kubernetes', why: 'this runs in no cluster', hint: 'give --runtime kubernetes' },
      ],
    };
  }
  const choice = isSaved ? parseEndpoint(saved) : chosenCluster({ env, home });
  try {
    const found = await openCluster(choice, environment);
    // Nobody asked for the cluster that this happens to be in, so it is used where its account may do that.
    if (!isSaved && !named) await found.probe(AbortSignal.timeout(PROBE_MS));
    return { found };
  } catch (error) {
    const told = clusterFailure(error, { verb: 'get', resource: 'version', namespace: '' });
    if (!(told instanceof SkepError)) throw error;
    return { refusals: [{ strategy: 'kubernetes', why: told.message }], error: told };
  }
};

function chosenCluster({ env, home }: Surroundings): ClusterChoice {
  const { KUBECONFIG: named, KUBERNETES_SERVICE_HOST: inside } = env;
  const namespace = env['SKEP_KUBE_NAMESPACE'];
  const at = namespace ? { namespace } : {};
  if (named) return { kubeconfig: named, ...at };
  return inside ? at : { kubeconfig: join(home, '.kube/config'), ...at };
}

async function openCluster(
  choice: ClusterChoice,
  { env, owner }: RuntimeEnvironment,
): Promise<KubernetesRuntime> {
  const { kubeconfig, context } = choice;
  // A saved workload of the cluster in which this runs stays there, whatever KUBECONFIG says by now.
  const place: ClusterPlace = {
    env: kubeconfig === undefined ? { ...env, KUBECONFIG: undefined } : env,
    kubeconfig,
    context,
  };
  const access = await clusterAccess(place);
  const namespace = await namespaceOf(choice, access.namespace);
  const at = new URL(access.server).origin;
  const pinned = { ...place, context: context ?? access.context };
  const asker = openAsker({ ...pinned, userAgent: 'skep' });
  const id = createHash('sha256').update(`${access.server.href} ${namespace}`).digest('hex').slice(0, 32);
  const endpoint = endpointText({
    ...(kubeconfig === undefined ? {} : { kubeconfig, context: access.context ?? '' }),
    namespace,
  });
  return new KubernetesRuntime({
    api: new ClusterApi(asker, namespace),
    place: pinned,
    clock: systemClock,
    isInside: kubeconfig === undefined,
    owner,
    info: { id, endpoint: `${endpoint}#${at}` },
  });
}

/** The service account's, where that is what signs in; else the variable's, the kubeconfig's, or `default`. */
export async function namespaceOf(
  { kubeconfig, namespace }: ClusterChoice,
  ofContext: string | undefined,
  accountFolder = ACCOUNT_FOLDER,
): Promise<string> {
  const what = 'namespace of the service account';
  const own =
    kubeconfig === undefined
      ? (await readText(join(accountFolder, 'namespace'), { maxBytes: 1024, what }).catch(() => '')).trim()
      : '';
  const chosen = own || namespace || ofContext || 'default';
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(chosen)) return chosen;
  throw new SkepError('runtime/unavailable', {
    message: `"${chosen.slice(0, 80)}" is no name of a namespace`,
    hint: 'correct SKEP_KUBE_NAMESPACE, or the namespace of the kubeconfig',
  });
}

/** How a saved workload says which cluster it is in. */
export function endpointText({ kubeconfig, context, namespace }: ClusterChoice): string {
  const query = new URLSearchParams({ ...(context ? { context } : {}), ...(namespace ? { namespace } : {}) });
  return `${kubeconfig === undefined ? 'in-cluster:' : `kubeconfig:${encodeURI(kubeconfig)}`}?${query.toString()}`;
}

export function parseEndpoint(text: string): ClusterChoice {
  const [, scheme, file = '', query = ''] = /^(kubeconfig|in-cluster):([^?#]*)\?([^#]*)/.exec(text) ?? [];
  if (scheme === undefined) {
    throw new SkepError('runtime/unavailable', { message: `"${text.slice(0, 80)}" names no cluster` });
  }
  const said = new URLSearchParams(query);
  const [context, namespace] = [said.get('context'), said.get('namespace')];
  return {
    ...(scheme === 'kubeconfig' ? { kubeconfig: decodeURI(file) } : {}),
    ...(context ? { context } : {}),
    ...(namespace ? { namespace } : {}),
  };
}
