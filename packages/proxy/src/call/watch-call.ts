import type { ServerResponse } from 'node:http';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Response } from '../message/json-rpc.ts';
import type { Call } from './call.ts';
import { SentBody } from './sent-body.ts';

/** How a call ended. */
export interface CallEnd {
  /** Undefined where the response did not come to its end. */
  readonly status: number | undefined;
  /** The status of a refusal whose client had left before it. */
  readonly unheard: number | undefined;
  /** Undefined where there was none, or none that could be read. */
  readonly answer: Response | undefined;
  /** The body of an answer with a status of 400 or more. */
  readonly refusal: string | undefined;
  /** Of the body, without what event streams bring later. */
  readonly bytes: number;
  /** From when it was first watched until its answer was known, else until its response was over. */
  readonly ms: number;
}

/** True for a GET that asks for an event stream. */
export function opensStream({ req }: Pick<Call, 'req'>): boolean {
  return req.method === 'GET' && /\btext\/event-stream\b/iu.test(req.headers.accept ?? '');
}

/**
 * Watches one call until its response is over and its answer is known, wherever that comes; of an event stream until it
 * opens, for it may stay open for days.
 */
export class WatchedCall {
  readonly #clock: Clock;
  readonly #begun: number;
  readonly #sent: SentBody;
  #ended: ((end: CallEnd) => void) | undefined;
  #isAnsweredElsewhere = false;
  #answer: Response | undefined;
  #answeredAt: number | undefined;
  #status: number | undefined;
  #unheard: number | undefined;
  #overAt: number | undefined;

  constructor(call: Call, clock: Clock) {
    this.#clock = clock;
    this.#begun = clock.elapsed();
    this.#sent = call.sent ??= SentBody.of(call.res);
    call.answerHooks.push((answer) => this.#heard(answer));
    watchEnd(call.res, this);
    if (opensStream(call)) watchHead(call.res, this);
  }

  /** The steps are through with the call, which is not kept; `ended` is called once, possibly at once. */
  settle({ isAnsweredElsewhere, res }: Call, ended: (end: CallEnd) => void): void {
    if (res.destroyed && !res.headersSent && res.statusCode >= 400) this.#unheard = res.statusCode;
    this.#isAnsweredElsewhere = isAnsweredElsewhere;
    this.#ended = ended;
    this.#tellIfKnown();
  }

  /** The response is over; `status` is undefined where it did not come to its end. */
  over(status: number | undefined): void {
    if (this.#overAt !== undefined) return;
    this.#overAt = this.#clock.elapsed();
    this.#status = status;
    this.#tellIfKnown();
  }

  #heard(answer: Response): void {
    if (this.#answer !== undefined) return;
    this.#answer = answer;
    this.#answeredAt = this.#clock.elapsed();
    this.#tellIfKnown();
  }

  #tellIfKnown(): void {
    const overAt = this.#overAt;
    const tell = this.#ended;
    if (overAt === undefined || tell === undefined) return;
    if (this.#isAnsweredElsewhere && this.#answer === undefined) return;
    this.#ended = undefined;
    const { bytes, refusal } = this.#sent;
    const ms = (this.#answeredAt ?? overAt) - this.#begun;
    tell({ status: this.#status, unheard: this.#unheard, answer: this.#answer, refusal, bytes, ms });
  }
}

/** Functions of their own, so that what waits for the end of a response leads to no call. */
function watchEnd(res: ServerResponse, watched: WatchedCall): void {
  if (res.destroyed) watched.over(undefined);
  else res.on('close', () => watched.over(res.writableFinished ? res.statusCode : undefined));
}

function watchHead(res: ServerResponse, watched: WatchedCall): void {
  const send = res.writeHead.bind(res) as (...given: readonly unknown[]) => ServerResponse;
  Object.assign(res, {
    writeHead: (...given: readonly unknown[]): ServerResponse => {
      const sent = send(...given);
      watched.over(res.statusCode);
      return sent;
    },
  });
}
