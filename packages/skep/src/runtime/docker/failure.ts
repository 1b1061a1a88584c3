import { SkepError } from '@skep/core/errors/skep-error.ts';
import { tlsReason } from '@skep/core/fetch/tls-reason.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { noSuchWorkload } from '../workload-name.ts';
import { endpointText, type Endpoint } from './endpoint.ts';
import { isTimeUp } from '../time-up.ts';
import { STUCK } from '../stuck.ts';

/**
 * What a broken or refused connection to the engine becomes; `runtime/aborted` when the caller's signal cut it, unless that was
 * a time limit, which says something of the engine.
 */
export function unreachable(endpoint: Endpoint, cause: unknown, signal?: AbortSignal): SkepError {
  if (cause instanceof SkepError) return cause;
  if (signal?.aborted && !isTimeUp(signal)) return new SkepError('runtime/aborted', { cause });
  const code = signal?.aborted ? 'TimeoutError' : (errnoOf(cause) ?? 'connection lost');
  return new SkepError('runtime/engine-unreachable', {
    message: `the container engine at ${endpointText(endpoint)} does not answer: ${reasonOf(code)}`,
    ...(code === 'EACCES' ? { hint: permissionHint(endpoint) } : {}),
    ...(isTlsFailure(code) ? { hint: TLS_HINT } : {}),
    cause,
  });
}

/** An engine that answers something else than that it is there. */
export function refusedPing(endpoint: Endpoint, status: number, body: unknown): SkepError {
  const wantsTls = status === 400 && /HTTPS server/i.test(engineMessage(body));
  return new SkepError('runtime/engine-unreachable', {
    message: `the container engine at ${endpointText(endpoint)} ${wantsTls ? 'speaks TLS alone' : `answered ${status} to a ping`}`,
    ...(wantsTls
      ? {
          hint: 'set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the directory of ca.pem, cert.pem and key.pem',
        }
      : {}),
  });
}

const TLS_HINT =
  'ca.pem is the authority of the engine, cert.pem and key.pem are yours; they lie where DOCKER_CERT_PATH says, or in the docker context';

function permissionHint(endpoint: Endpoint): string {
  if (endpoint.kind === 'unix' && endpoint.path.includes('podman'))
    return 'use your own Podman: systemctl --user enable --now podman.socket';
  return 'add yourself to the group that owns the socket (sudo usermod -aG docker "$USER"), and sign in again; or use a rootless engine';
}

const isTlsFailure = (code: string): boolean =>
  tlsReason(code) !== undefined || code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_');

function reasonOf(code: string): string {
  const known = REASONS[code] ?? tlsReason(code);
  if (known !== undefined) return known;
  if (/^ERR_SSL_.*ALERT/.test(code)) return 'it does not take our client certificate';
  return code;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its socket does not exist',
  ECONNREFUSED: 'nothing listens there',
  EACCES: 'permission denied',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'the host name is unknown',
  TimeoutError: 'it said nothing in time',
};

/** What an engine, or a build on it, says of its disk, and what to do then. */
export const ENGINE_FULL = /no space left|ENOSPC/i;
export const FREE_ENGINE_DISK =
  'free space on the disk of the container engine; skep prune removes images that no server uses';

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
  const said = engineMessage(answer.body);
  const next = ENGINE_FULL.test(said) ? FREE_ENGINE_DISK : hint;
  return new SkepError('runtime/engine-refused', {
    message: `the container engine refused to ${what}: ${said}`,
    ...(next === undefined ? {} : { hint: next }),
    detail: { status: answer.status },
  });
}

/** Why an engine did not create a container, by what it answered. */
export function createFailure(
  spec: Pick<WorkloadSpec, 'name' | 'reference'>,
  answer: Parameters<typeof refused>[1],
): SkepError {
  const message = engineMessage(answer.body);
  // The second is Podman's.
  if (answer.status === 409 || /\bname\b.*\bis already in use\b/.test(message)) {
    return new SkepError('runtime/name-taken', {
      message: `a container named "${spec.name}" exists already`,
    });
  }
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
    hint: startHint(message),
    ...(/\btask \S+: already exists/.test(message) ? { detail: STUCK } : {}),
  });
}

function startHint(message: string): string | undefined {
  if (ENGINE_FULL.test(message)) return FREE_ENGINE_DISK;
  return /exec format error/i.test(message) ? OTHER_PROCESSORS : undefined;
}

const OTHER_PROCESSORS =
  'its image is for other processors than the engine; DOCKER_DEFAULT_PLATFORM, or another tag, names the one that is pulled';
