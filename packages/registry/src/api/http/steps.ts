import { SkepError } from '@skep/core/errors/skep-error.ts';
import { tellsAll, toHttp } from '@skep/core/errors/to-http.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { CorsSettings } from '../../config/cors.ts';
import type { ApiContext, Route } from '../route/route.ts';
import { answer, type HandlerTime } from './answer.ts';
import type { BodiesInFlight } from './bodies-in-flight.ts';
import { allowOrigins } from './cors.ts';
import { guard, type HostRules } from './guard.ts';
import { identify, identifyAgain, requireRole, type Identification } from './identify.ts';
import { CachedReads } from './cached-reads.ts';
import { readBody, requireJson, readToItsEnd } from './read-body.ts';
import type { ApiRequest, Prepared, Run } from './request.ts';
import { find, refuseUnknown } from './router.ts';
import type { Prepare, AnswerSender } from './send.ts';

/** What steps hand on to each other. `head` is there from the start: method, target and headers. */
export type Facet = 'head' | 'row' | 'caller' | 'body' | 'answer';

export interface Step {
  readonly name: string;
  /** What must have been written by an earlier step. */
  readonly reads: readonly Facet[];
  readonly writes: readonly Facet[];
  readonly run: Run;
}

export interface StepParts {
  readonly routes: readonly Route[];
  readonly context: ApiContext;
  readonly prepare: Prepare;
  readonly identification: Identification;
  readonly bodies: BodiesInFlight;
  readonly time: HandlerTime;
  /** What `Host` and `Origin` may be. */
  readonly hosts: () => HostRules | undefined;
  /** Undefined: browsers let no page of another origin call. */
  readonly cors: CorsSettings | undefined;
  /** Refuses callers that ask too often; undefined where they may. */
  readonly rate: Run | undefined;
}

const step = (name: string, reads: readonly Facet[], writes: readonly Facet[], run: Run): Step => ({
  name,
  reads,
  writes,
  run,
});

/**
 * What happens to every request before its handler, from top to bottom. The order is the security of the interface: what
 * nobody may send is refused unseen, and an unknown path, a role, a type or a body is a matter for callers who are known.
 * The question that a browser asks first carries no token and is answered before. A read that was answered a moment ago
 * for the same caller is answered again without its handler. The sign-in may be replaced while a body arrives.
 */
export function steps(parts: StepParts): readonly Step[] {
  const { routes, context, prepare, identification, bodies, time, hosts, cors, rate } = parts;
  const reads = new CachedReads();
  const read = (request: ApiRequest): Prepared | undefined => reads.find(context.snapshot(), request);
  return [
    step('guard', ['head'], [], guard(hosts)),
    step('find', ['head'], ['row'], find(routes)),
    ...(cors === undefined ? [] : [step('cors', ['head'], [], allowOrigins(cors, prepare))]),
    step('identify', ['head', 'row'], ['caller'], identify(identification)),
    step('known', ['row', 'caller'], [], refuseUnknown),
    ...(rate === undefined ? [] : [step('rate', ['caller'], [], rate)]),
    step('cached', ['row', 'caller'], ['answer'], read),
    step('role', ['row', 'caller'], [], requireRole),
    step('type', ['row', 'caller'], [], requireJson),
    step('body', ['row', 'caller'], ['body'], readBody(bodies)),
    step('again', ['row', 'body'], ['caller'], identifyAgain(identification)),
    step('answer', ['row', 'caller', 'body'], ['answer'], answer({ context, prepare, reads, time })),
  ];
}

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
