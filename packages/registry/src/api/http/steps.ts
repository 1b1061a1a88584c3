import { parse } from 'node:querystring';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { tellsAll, toHttp } from '@skep/core/errors/to-http.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { CorsSettings } from '../../config/cors.ts';
import type { ApiContext, Route, Answer } from '../route/route.ts';
import { allowOrigins } from './cors.ts';
import { guard, type HostRules } from './guard.ts';
import { identify, identifyAgain, requireRole, callerOf } from './identify.ts';
import { CachedReads } from './cached-reads.ts';
import { readBody, requireJson, readToItsEnd, BodiesInFlight } from './read-body.ts';
import { limitRate, limitRefusals, type Rate } from './rate-limit.ts';
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

/** What the steps of a listener are made from. */
export interface StepOptions {
  readonly routes: readonly Route[];
  readonly context: ApiContext;
  readonly clock: Clock;
  /** Absent: browsers let no page of another origin call. */
  readonly cors?: CorsSettings;
  /** Milliseconds for a request to arrive, and for its handler; default 10 s. */
  readonly requestMs?: number;
  /** Absent or undefined: callers may ask as often as they like. */
  readonly requestRate?: () => Rate | undefined;
  /** How often tokens of one address may be refused; absent: as often as they come. */
  readonly refusalRate?: () => Rate;
  /** Bytes of bodies that have not arrived whole; tests set fewer. */
  readonly mostUnfinished?: number;
  /** What `Host` and `Origin` may be; undefined, or absent: anything. */
  readonly hosts?: () => HostRules | undefined;
}

/** For a request to arrive, and for its handler after that. */
export const DEFAULT_REQUEST_MS = 10_000;

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
export function steps(options: StepOptions, prepare: Prepare): readonly Step[] {
  const { routes, context, clock, cors, requestRate, refusalRate, hosts, mostUnfinished } = options;
  const limit = refusalRate && limitRefusals(refusalRate, clock);
  const identification = { signIn: context.signIn, limitRefusals: limit };
  const reads = new CachedReads();
  const read = (request: ApiRequest): Prepared | undefined => reads.find(context.snapshot(), request);
  return [
    step('guard', ['head'], [], guard(hosts)),
    step('find', ['head'], ['row'], find(routes)),
    ...(cors === undefined ? [] : [step('cors', ['head'], [], allowOrigins(cors, prepare))]),
    step('identify', ['head', 'row'], ['caller'], identify(identification)),
    step('known', ['row', 'caller'], [], refuseUnknown),
    ...(requestRate === undefined ? [] : [step('rate', ['caller'], [], limitRate(requestRate, clock))]),
    step('cached', ['row', 'caller'], ['answer'], read),
    step('role', ['row', 'caller'], [], requireRole),
    step('type', ['row', 'caller'], [], requireJson),
    step('body', ['row', 'caller'], ['body'], readBody(new BodiesInFlight(mostUnfinished))),
    step('again', ['row', 'body'], ['caller'], identifyAgain(identification)),
    step('answer', ['row', 'caller', 'body'], ['answer'], answer(options, prepare, reads)),
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
    request.failure = error instanceof SkepError ? error : new SkepError('internal/bug');
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

/** Calls the handler of the row. Fails with what the handler fails with, and `registry/handler-timeout`. */
function answer(options: StepOptions, prepare: Prepare, reads: CachedReads): Run {
  const { context } = options;
  return (request) => {
    const { row, params: path, body, socket: connection } = request;
    if (row === undefined) throw new SkepError('registry/no-such-route');
    const authority = callerOf(request);
    const answered = row.handle(context, { authority, path, query: queryOf(request), body, connection });
    const prepared = (ready: Answer): Prepared => {
      request.facts = ready.facts;
      return prepare(ready);
    };
    if (answered instanceof Promise) return inTime(answered, options).then(prepared);
    const read = prepared(answered);
    // A publish meanwhile is impossible: nothing here has waited.
    if (row.access === 'registry') reads.keep(context.snapshot(), request, read);
    return read;
  };
}

/** Every parameter of the query, percent-decoded; one that is given several times is a list. */
function queryOf({ url }: ApiRequest) {
  const at = url.search(/[?#]/);
  return at === -1 ? {} : parse(url.slice(at + 1), '&', '=', { maxKeys: 0 });
}

/** A handler that takes too long goes on, because what it writes may be half done; only its caller stops waiting. */
function inTime(
  answered: Promise<Answer>,
  { clock, requestMs = DEFAULT_REQUEST_MS }: StepOptions,
): Promise<Answer> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const { cancel } = clock.after(requestMs, () => reject(new SkepError('registry/handler-timeout')));
  return Promise.race([answered, late]).finally(cancel);
}
