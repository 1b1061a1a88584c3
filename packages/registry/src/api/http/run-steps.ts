import { SkepError } from '@skep/core/errors/skep-error.ts';
import { tellsAll, toHttp } from '@skep/core/errors/to-http.ts';
import type { Log } from '@skep/core/log/log.ts';
import { readToItsEnd } from './read-body.ts';
import type { ApiRequest } from './request.ts';
import type { AnswerSender } from './send.ts';
import type { Run } from './request.ts';

/** Seconds, where nobody knows better when what is away comes back. */
const RETRY_AFTER = '2';

/**
 * Takes a request through the steps until one answers, and sends that; a step that throws is answered with its error. Goes
 * on without a promise as long as no step returns one: reads have nothing to wait for.
 */
export function stepRunner(
  steps: readonly { readonly run: Run }[],
  sender: AnswerSender,
  log: Log,
): (request: ApiRequest) => void {
  const fail = (request: ApiRequest, error: unknown): void => {
    request.failure =
      error instanceof SkepError
        ? { code: error.code, detail: error.detail }
        : { code: 'internal/bug', detail: {} };
    if (!tellsAll(error)) log.error({ err: error, request_id: request.id }, 'request failed');
    readToItsEnd(request);
    const { status, body } = toHttp(error);
    const after = retryAfter(error, status);
    if (after !== undefined) request.added.push('retry-after', after);
    sender.send(request, sender.prepare({ status, cache: 'no-store', body: () => body }), fail);
  };
  const go = (request: ApiRequest, from: number): void => {
    try {
      for (let at = from; at < steps.length; at += 1) {
        const outcome = steps[at]?.run(request);
        if (outcome === undefined) continue;
        if (!(outcome instanceof Promise)) {
          sender.send(request, outcome, fail);
          return;
        }
        outcome.then(
          (prepared) => (prepared === undefined ? go(request, at + 1) : sender.send(request, prepared, fail)),
          (error: unknown) => fail(request, error),
        );
        return;
      }
    } catch (error) {
      fail(request, error);
    }
  };
  return (request) => go(request, 0);
}

function retryAfter(error: unknown, status: number): string | undefined {
  const known = error instanceof SkepError ? error.detail['retryAfterSeconds'] : undefined;
  if (typeof known === 'number') return `${known}`;
  return status === 503 ? RETRY_AFTER : undefined;
}
