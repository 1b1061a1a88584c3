import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import type { Problem } from '../../shape/problem.ts';
import { label, nonEmpty } from '../../shape/texts.ts';
import { sourceKind } from '../kind.ts';
import { OBJECT_KIND_NAMES } from './object-kinds.ts';

/** Namespaces for sources that name none. */
const WATCH_NAMESPACE = ['SKEP_REGISTRY_WATCH_NAMESPACE', 'THV_REGISTRY_WATCH_NAMESPACE'] as const;
const IN_FILE_ONLY = ['kubeconfig', 'context'] as const;

export const kubernetesKind = sourceKind({
  shape: z.strictObject({
    namespaces: z
      .array(label)
      .optional()
      .describe(
        'where objects are looked for; those of `SKEP_REGISTRY_WATCH_NAMESPACE`, which is no limit, else all, when absent',
      ),
    kinds: z
      .array(z.enum(OBJECT_KIND_NAMES))
      .min(1, 'must name at least one kind')
      .optional()
      .describe('which kinds of object are looked for; all when absent'),
    kubeconfig: nonEmpty
      .optional()
      .describe(
        'a file that says where the cluster is, from the folder of the configuration; `KUBECONFIG`, else the cluster that this runs in, when absent',
      ),
    context: nonEmpty.optional().describe('which context of the kubeconfig; its current one when absent'),
  }),
  brief: 'what objects of a Kubernetes cluster say in their annotations',
  relativePaths: ['kubeconfig'],
  problems: function* (block, path, origin): Generator<Problem> {
    if (origin === 'file') return;
    for (const key of IN_FILE_ONLY) {
      if (key in block)
        yield { path: [...path, key], message: 'is only for sources of the configuration file' };
    }
  },
  watch: ({ namespaces, kinds, kubeconfig, context }, { env, limits, clock, random, userAgent }) => {
    const within = namespaces !== undefined && namespaces.length > 0 ? namespaces : namespacesFrom(env);
    return {
      follow: async (options) => {
        const [{ followCluster }, { openCluster }] = await Promise.all([
          import('./follow-cluster.ts'),
          import('./cluster-client.ts'),
        ]);
        return followCluster({
          ...options,
          cluster: openCluster({ env, kubeconfig, context, userAgent }),
          kinds: kinds ?? OBJECT_KIND_NAMES,
          namespaces: within,
          limits,
          clock,
          random,
        });
      },
    };
  },
});

/** Fails rather than to mean all namespaces by what is no list of them. */
function namespacesFrom(env: Readonly<Record<string, string | undefined>>): string[] | undefined {
  const variable = WATCH_NAMESPACE.find((name) => (env[name]?.trim() ?? '') !== '');
  const text = variable === undefined ? undefined : env[variable];
  if (text === undefined) return undefined;
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !label.safeParse(name).success);
  if (wrong === undefined) return names;
  const message = `${variable} names ${JSON.stringify(wrong)}, which is no namespace`;
  throw new SkepError('config/invalid', { message });
}
