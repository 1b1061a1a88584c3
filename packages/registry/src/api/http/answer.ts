import { SkepError } from '@skep/core/errors/skep-error.ts';
import { parse } from 'node:querystring';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Answer, ApiContext } from '../route/route.ts';
import type { CachedReads } from './cached-reads.ts';
import { callerOf } from './identify.ts';
import type { ApiRequest, Prepared, Run } from './request.ts';
import type { Prepare } from './send.ts';

/** How long a handler may take. */
export interface HandlerTime {
  readonly clock: Clock;
  readonly requestMs: number;
}

export interface AnswerParts {
  readonly context: ApiContext;
  readonly prepare: Prepare;
  readonly reads: CachedReads;
  readonly time: HandlerTime;
}

/** Calls the handler of the row. Fails with what the handler fails with, and `registry/handler-timeout`. */
export function answer({ context, prepare, reads, time }: AnswerParts): Run {
  return (request) => {
    const { row, params: path, body, socket: connection } = request;
    if (row === undefined) throw new SkepError('registry/no-such-route');
    const authority = callerOf(request);
    const answered = row.handle(context, { authority, path, query: queryOf(request), body, connection });
    const prepared = (ready: Answer): Prepared => {
      request.facts = ready.facts;
      return prepare(ready);
    };
    if (answered instanceof Promise) return inTime(answered, time).then(prepared);
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
function inTime(answered: Promise<Answer>, { clock, requestMs }: HandlerTime): Promise<Answer> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const { cancel } = clock.after(requestMs, () => reject(new SkepError('registry/handler-timeout')));
  return Promise.race([answered, late]).finally(cancel);
}
