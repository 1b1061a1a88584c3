import { saidBy, statusOf } from '@skep/core/fetch/client.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isTimeUp } from '../time-up.ts';

/** What was asked of a cluster: a verb and a resource as roles name them, and where. */
export interface Asked {
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string;
  /** The object. */
  readonly name?: string;
}

/** What a failed request means to whoever runs workloads. Errors of other kinds are handed on as they are. */
export function clusterFailure(
  error: unknown,
  { verb, resource, namespace, name }: Asked,
  signal?: AbortSignal,
): unknown {
  if (signal?.aborted === true)
    return isTimeUp(signal)
      ? silent('it said nothing in time', error)
      : new SkepError('runtime/aborted', { cause: error });
  if (!(error instanceof SkepError)) return error;
  const what = name === undefined ? resource : `${resource} "${name}"`;
  const doing = `${verb} ${what} in the namespace "${namespace}"`;
  const said = saidBy(error);
  const words = said === undefined ? '' : `: ${said}`;
  const status = statusOf(error);
  if (status === 401) {
    return refused(
      `the cluster does not accept who asks to ${doing}${words}`,
      'renew the token or certificate of the kubeconfig or service account',
      error,
    );
  }
  if (status === 403) {
    return refused(
      `this account may not ${doing}${words}`,
      // To apply what is not there yet is to create it, which only the server knows.
      `give it a Role with the verb "${/cannot (create|patch) resource/.exec(said ?? '')?.[1] ?? verb}" for "${resource}"`,
      error,
    );
  }
  if (status === 400 || status === 422) {
    return new SkepError('runtime/invalid-workload', {
      message: `the cluster does not accept the ${what}${words}`,
      cause: error,
    });
  }
  if (status === 409) return new SkepError('runtime/engine-refused', conflict(what, words, error));
  if (status !== undefined && status < 500 && status !== 429) {
    return refused(`the cluster answered ${status} to ${doing}${words}`, undefined, error);
  }
  if (error.code === 'source/invalid-cluster') {
    return new SkepError('runtime/unavailable', {
      message: error.message,
      hint: 'correct the kubeconfig, or run where a service account is mounted',
      cause: error,
    });
  }
  if (error.code === 'source/bad-answer' || error.code === 'fetch/too-large') {
    return refused(error.message, 'check that the kubeconfig names a Kubernetes API server', error);
  }
  if (!error.code.startsWith('fetch/')) return error;
  return silent(error.message, error);
}

function silent(why: string, cause: unknown): SkepError {
  return new SkepError('runtime/engine-unreachable', {
    message: `the cluster does not answer: ${why}`,
    hint: 'check that its API server can be reached from here',
    cause,
  });
}

function refused(message: string, hint: string | undefined, cause: unknown): SkepError {
  return new SkepError('runtime/engine-refused', { message, ...(hint === undefined ? {} : { hint }), cause });
}

function conflict(what: string, words: string, cause: unknown) {
  return {
    message: `somebody else changed the ${what} meanwhile${words}`,
    hint: 'run the command again',
    detail: { conflict: true },
    cause,
  };
}

/** Whether a request failed because the object is another one by now, or was there already. */
export function isConflict(error: unknown): boolean {
  return error instanceof SkepError && error.detail['conflict'] === true;
}
