import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { CODES, type Code, type CodeRow } from '@skep/core/errors/codes.ts';
import type { Waiter } from '../backend/stdio/peer.ts';
import { throughHooks, type Call } from '../call.ts';
import type { Clock, Timer } from '../clock.ts';
import { errorOf, type Message, type Request, type Response } from '../message/json-rpc.ts';
import { METHODS } from '../message/methods.ts';
import { bodyOf } from './event.ts';
import { refuse, rpcFailure } from './refuse.ts';
import type { Session } from './sessions.ts';
import { SseSocket } from './sse-socket.ts';
import { EventStream } from './stream.ts';
import type { Reader, UnreadBudget } from './unread-budget.ts';

/** A quick answer goes out in one piece; a slower one opens its stream after this, so that a client can resume it. */
const OPEN_AFTER_MS = 25;

/** What the endpoint knows about one POST with a request in it. */
export interface PostedRequest {
  readonly call: Call;
  readonly request: Request;
  readonly session: Session | undefined;
  readonly clock: Clock;
  readonly budget: UnreadBudget;
  readonly headers?: OutgoingHttpHeaders;
}

/** Sends one message as the whole JSON body. */
function sendJson(res: ServerResponse, text: string, { headers, budget }: PostedRequest): void {
  if (res.headersSent || res.destroyed) return;
  res.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  });
  res.end(text);
  if (res.writableLength === 0) return;
  const reader: Reader = {
    get unread() {
      return res.writableLength;
    },
    cut: () => void res.destroy(),
  };
  res.once('close', () => budget.release(reader));
  budget.update(reader);
}

/** Answers with one JSON body. Nothing can be said before the answer. */
export function jsonWaiter(posted: PostedRequest): Waiter {
  const { call, request } = posted;
  const answer = (reply: Response): void => {
    const passed = throughHooks(call.replyHooks, { message: reply, request });
    if (passed === undefined) refuse(call.res, 'proxy/withheld', { id: request.id });
    else sendJson(call.res, passed.text, posted);
  };
  return {
    carries: false,
    send() {},
    finish: answer,
    fail: (code) => refuse(call.res, code, { id: request.id }),
  };
}

/** Answers with an event stream: what belongs to the request first, then the answer. */
export class StreamWaiter implements Waiter {
  readonly #posted: PostedRequest;
  readonly #stream: EventStream;
  readonly #opening: Timer;

  constructor(posted: PostedRequest) {
    const { call, session, clock } = posted;
    this.#posted = posted;
    this.#stream = session?.openStream() ?? new EventStream(clock);
    this.#stream.attach(new SseSocket(call.res, posted));
    this.#opening = clock.after(OPEN_AFTER_MS, () => this.#stream.start());
  }

  get carries(): boolean {
    return this.#stream.reachable;
  }

  send(message: Message): void {
    this.#opening.cancel();
    const passed = this.#hooked(message);
    if (passed === undefined) return;
    const isProgress = passed.kind === 'notification' && passed.method === METHODS.progress;
    if (isProgress) this.#stream.sendDroppable(bodyOf(passed.text));
    else this.#stream.send(bodyOf(passed.text));
  }

  finish(reply: Response): void {
    const passed = this.#hooked(reply) ?? this.#error('proxy/withheld');
    this.#end(passed.text);
  }

  fail(code: Code): void {
    const { res } = this.#posted.call;
    const row: CodeRow = CODES[code];
    if (!res.headersSent && row.httpStatus === 503) {
      this.#opening.cancel();
      this.#posted.session?.streamDone(this.#stream);
      refuse(res, code, { id: this.#posted.request.id });
    } else if (code === 'proxy/cancelled') this.#end();
    else this.#end(this.#error(code).text);
  }

  #end(text?: string): void {
    this.#opening.cancel();
    this.#stream.end(text);
    this.#posted.session?.streamDone(this.#stream);
  }

  #hooked(message: Message): Message | undefined {
    const { call, request } = this.#posted;
    return throughHooks(call.replyHooks, { message, request });
  }

  #error(code: Code): Response {
    return errorOf(this.#posted.request.id, rpcFailure(code));
  }
}
