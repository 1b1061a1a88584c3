import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { noSuchWorkload } from '../workload-name.ts';
import { endpointText, type Endpoint } from './endpoint.ts';
import { STUCK } from '../stuck.ts';

/** What a broken or refused connection to the engine becomes; `runtime/aborted` when the caller's signal cut it. */
export function unreachable(endpoint: Endpoint, cause: unknown, signal?: AbortSignal): SkepError {
  if (cause instanceof SkepError) return cause;
  if (signal?.aborted) return new SkepError('runtime/aborted', { cause });
  const code = errnoOf(cause) ?? 'connection lost';
  return new SkepError('runtime/engine-unreachable', {
    message: `the container engine at ${endpointText(endpoint)} does not answer: ${REASONS[code] ?? code}`,
    ...(code === 'EACCES' ? { hint: 'add yourself to the docker group, or use a rootless engine' } : {}),
    cause,
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its socket does not exist',
  ECONNREFUSED: 'nothing listens there',
  EACCES: 'permission denied',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'the host name is unknown',
};

/** The engine's own words for a failure: `{message}` of an API error, `{error}` of a progress stream, or the text. */
export function engineMessage(body: unknown): string {
  if (typeof body === 'object' && body !== null) {
    if ('message' in body && typeof body.message === 'string') return body.message;
    if ('error' in body && typeof body.error === 'string') return body.error;
    if ('cause' in body && typeof body.cause === 'string') return body.cause;
  }
  return (typeof body === 'string' ? body : JSON.stringify(body)).trim();
}

/** `what` names the attempt, for example `create container "x"`; `hint` the next step. */
export function refused(
  what: string,
  answer: { readonly status: number; readonly body: unknown },
  hint?: string,
): SkepError {
  return new SkepError('runtime/engine-refused', {
    message: `the container engine refused to ${what}: ${engineMessage(answer.body)}`,
    ...(hint === undefined ? {} : { hint }),
    detail: { status: answer.status },
  });
}

/** Why an engine did not create a container, by what it answered. */
export function createFailure(
  spec: Pick<WorkloadSpec, 'name' | 'reference'>,
  answer: Parameters<typeof refused>[1],
): SkepError {
  if (answer.status === 409) {
    return new SkepError('runtime/name-taken', {
      message: `a container named "${spec.name}" exists already`,
    });
  }
  const message = engineMessage(answer.body);
  if (answer.status === 404 && /image/i.test(message)) {
    return new SkepError('runtime/image-not-found', {
      message: `image "${spec.reference}" is not on the engine`,
      hint: 'start the workload with skep start, which pulls or builds it again',
    });
  }
  return refused(`create container "${spec.name}"`, answer);
}

/** Why it did not start one. */
export function startFailure(name: string, answer: Parameters<typeof refused>[1]): SkepError {
  const message = engineMessage(answer.body);
  if (answer.status === 404 && /no such container/i.test(message)) return noSuchWorkload(name);
  return new SkepError('runtime/start-failed', {
    message: `workload "${name}" could not be started: ${message}`,
    ...(/\btask \S+: already exists/.test(message) ? { detail: STUCK } : {}),
  });
}
