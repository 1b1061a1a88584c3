import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { CODES, type Code, type CodeRow } from '@skep/core/errors/codes.ts';
import type { Waiter } from '../backend/stdio/peer.ts';
import { throughHooks, type ReplyHook } from '../call.ts';
import type { Clock, Timer } from '../clock.ts';
import { errorOf, type Message, type RequestHead, type Response } from '../message/json-rpc.ts';
import { METHODS } from '../message/methods.ts';
import type { ReplyForm } from './accept.ts';
import { bodyOf } from './event.ts';
import { refuse, rpcFailure } from './refuse.ts';
import type { Session } from './sessions.ts';
import { SseSocket } from './sse-socket.ts';
import { EventStream } from './stream.ts';
import type { Reader, UnreadBudget } from './unread-budget.ts';

/**
 * A stream is opened by its first message, or after this, so that the answer to a long call can be resumed. Until then the
 * answer may still become JSON.
 */
const OPEN_AFTER_MS = 2_000;
/** Clients bound the size of an event (1 MiB in an official one) and not that of a JSON body. */
const EVENT_CHARACTERS = 256 * 1024;

/** What the endpoint keeps of one POST with a request in it: nothing that grows with its body. */
export interface PostedRequest {
  readonly res: ServerResponse;
  readonly replyHooks: readonly ReplyHook[];
  readonly request: RequestHead;
  readonly form: ReplyForm;
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

/** Takes the answer to a POST in the form that its client admits. */
export const waiterFor = (posted: PostedRequest): Waiter =>
  posted.form === 'json' ? jsonWaiter(posted) : new StreamWaiter(posted);

/** Answers with one JSON body. Nothing can be said before the answer. */
function jsonWaiter(posted: PostedRequest): Waiter {
  const { res, replyHooks, request } = posted;
  const answer = (reply: Response): void => {
    const passed = throughHooks(replyHooks, { message: reply, request });
    if (passed === undefined) refuse(res, 'proxy/withheld', { id: request.id });
    else sendJson(res, passed.text, posted);
  };
  return {
    carries: false,
    send() {},
    finish: answer,
    fail: (code) => refuse(res, code, { id: request.id }),
  };
}

/** Answers with an event stream: what belongs to the request first, then the answer. */
class StreamWaiter implements Waiter {
  readonly #posted: PostedRequest;
  readonly #stream: EventStream;
  readonly #opening: Timer;

  constructor(posted: PostedRequest) {
    const { res, session, clock } = posted;
    this.#posted = posted;
    this.#stream = session?.openStream() ?? new EventStream(clock);
    this.#stream.attach(new SseSocket(res, posted));
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
    const { res, form } = this.#posted;
    const { text } = this.#hooked(reply) ?? this.#error('proxy/withheld');
    const asJson = form === 'either' && text.length > EVENT_CHARACTERS;
    if (!asJson || res.headersSent || res.destroyed) this.#end(text);
    else {
      this.#letGo();
      sendJson(res, text, this.#posted);
    }
  }

  fail(code: Code): void {
    const { res } = this.#posted;
    const row: CodeRow = CODES[code];
    if (!res.headersSent && row.httpStatus === 503) {
      this.#letGo();
      refuse(res, code, { id: this.#posted.request.id });
    } else if (code === 'proxy/cancelled') this.#end();
    else this.#end(this.#error(code).text);
  }

  #end(text?: string): void {
    this.#stream.end(text);
    this.#letGo();
  }

  /** The stream says nothing, or nothing more. */
  #letGo(): void {
    this.#opening.cancel();
    this.#posted.session?.streamDone(this.#stream);
  }

  #hooked(message: Message): Message | undefined {
    const { replyHooks, request } = this.#posted;
    return throughHooks(replyHooks, { message, request });
  }

  #error(code: Code): Response {
    return errorOf(this.#posted.request.id, rpcFailure(code));
  }
}
