import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Glance } from '../environment.ts';

/** Whether this runs in a cluster, or one was asked for and a kubeconfig is there; nobody is asked. */
export const glanceAtCluster: Glance = ({ env, home }) => {
  if (env['KUBERNETES_SERVICE_HOST']) return Promise.resolve('yes');
  const isAsked = env['SKEP_RUNTIME'] === 'kubernetes';
  const there = isAsked && existsSync(env['KUBECONFIG'] || join(home, '.kube/config'));
  return Promise.resolve(there ? 'unknown' : 'no');
};
