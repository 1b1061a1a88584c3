import { SkepError } from '@skep/core/errors/skep-error.ts';
import { parseConfinedUser } from '../../permissions/confined-user-name.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { checkObjectName } from './names.ts';

/** Anything that a kubelet could be asked to fetch (the grammar of references of OCI distribution). */
const IMAGE =
  /^(?:[a-z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/i;

type Asked = Pick<WorkloadSpec, 'name'> & Partial<WorkloadSpec>;

/** Refuses what cannot be meant in a cluster, before anything exists. Throws `runtime/invalid-workload`. */
export function checkSpec(spec: Asked): void {
  checkObjectName(spec.name);
  const { mounts = [], overlays = [], data = [], volumes = [] } = spec;
  const mounted = [...mounts, ...overlays, ...volumes].map(({ target }) => target);
  const [kept] = [...mounted, ...data];
  if (kept !== undefined) {
    throw invalid(
      `nothing of this machine, and nothing that is kept, can be at "${kept}" in a pod of a cluster`,
      'leave -v and data_paths out, or give the pod a volume with k8s_pod_template_patch',
    );
  }
  if (spec.privileged === true)
    throw invalid('pods are never privileged', 'leave the privileged profile out');
  if (spec.learns === true)
    throw invalid('nobody watches what a pod does with files', 'learn with --runtime sandbox');
  if (spec.user !== undefined && spec.user !== '' && parseConfinedUser(spec.user).uid === 0) {
    throw invalid('no pod runs as root', 'give another --sandbox-user, or none');
  }
  const { reference, env = {}, secretEnv = {} } = spec;
  if (reference !== undefined && !IMAGE.test(reference)) {
    throw new SkepError('runtime/image-not-found', { message: `"${reference}" is no reference of an image` });
  }
  const wrong = [...Object.keys(env), ...Object.keys(secretEnv)].find(
    (key) => !/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(key),
  );
  if (wrong !== undefined) throw invalid(`no pod can have the variable "${wrong}"`, 'call it otherwise');
}

export function invalid(message: string, hint: string): SkepError {
  return new SkepError('runtime/invalid-workload', { message, hint });
}
