import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { CODES, type Code, type CodeRow } from '@skep/core/errors/codes.ts';
import type { Waiter } from '../backend/port.ts';
import { tellAnswer, throughHooks, type AnswerHook, type ReplyHook } from '../call/call.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { errorOf, memberAt, type Message, type RequestHead, type Response } from '../message/json-rpc.ts';
import { METHODS } from '../message/methods.ts';
import type { ReplyForm } from './accept.ts';
import { bodyOf } from './event.ts';
import { refuse, rpcFailure } from '../call/refuse.ts';
import type { Session } from './sessions.ts';
import { SSE_HEAD, SseSocket } from './sse-socket.ts';
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
  readonly answerHooks: readonly AnswerHook[];
  readonly request: RequestHead;
  readonly form: ReplyForm;
  readonly session: Session | undefined;
  readonly clock: Clock;
  readonly budget: UnreadBudget;
  readonly headers?: OutgoingHttpHeaders;
  /** Some errors of a modern server have an HTTP status of their own. */
  readonly isModern?: boolean;
}

/** MCP 2026-07-28, Streamable HTTP: all other errors are answers like any other. */
const MODERN_STATUS: ReadonlyMap<unknown, number> = new Map([
  [-32601, 404],
  [-32020, 400],
  [-32021, 400],
  [-32022, 400],
]);

function statusOf(message: Message, { isModern }: PostedRequest): number {
  if (isModern !== true || message.kind !== 'response' || !message.failed) return 200;
  return MODERN_STATUS.get(memberAt(message.value, ['error', 'code'])) ?? 200;
}

/** Sends one message as the whole JSON body. */
function sendJson(message: Message, posted: PostedRequest): void {
  const headers = { 'Content-Type': 'application/json', ...posted.headers };
  return sendWhole(message.text, { headers, status: statusOf(message, posted) }, posted);
}

interface Head {
  readonly headers: OutgoingHttpHeaders;
  readonly status: number;
}

/** Head and body in one piece. */
function sendWhole(text: string, { headers, status }: Head, { res, budget }: PostedRequest): void {
  if (res.headersSent || res.destroyed) return;
  res.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(text) });
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
export function waiterFor(posted: PostedRequest): Waiter {
  return posted.form === 'json' ? jsonWaiter(posted) : new StreamWaiter(posted);
}

/** Answers with one JSON body. Nothing can be said before the answer. */
function jsonWaiter(posted: PostedRequest): Waiter {
  const { res, replyHooks, answerHooks, request } = posted;
  const answer = (reply: Response): void => {
    const passed = throughHooks(replyHooks, { message: reply, request });
    if (passed === undefined) {
      refuse(res, 'proxy/withheld', { id: request.id });
      return;
    }
    tellAnswer(answerHooks, passed);
    sendJson(passed, posted);
  };
  return {
    carries: false,
    send() {},
    finish: answer,
    fail: (code, message) => refuse(res, code, { id: request.id, message }),
  };
}

/**
 * Answers with an event stream: what belongs to the request first, then the answer. There is a stream only where something
 * comes before the answer; most answers are a response of one event.
 */
class StreamWaiter implements Waiter {
  readonly #posted: PostedRequest;
  readonly #opening: Timer;
  #stream: EventStream | undefined;

  constructor(posted: PostedRequest) {
    this.#posted = posted;
    this.#opening = posted.clock.after(OPEN_AFTER_MS, () => this.#open().start());
  }

  get carries(): boolean {
    const { res, session } = this.#posted;
    return this.#stream?.reachable ?? (session !== undefined || !res.destroyed);
  }

  send(message: Message): void {
    this.#opening.cancel();
    const stream = this.#open();
    const passed = this.#hooked(message);
    if (passed === undefined) return;
    const isProgress = passed.kind === 'notification' && passed.method === METHODS.progress;
    stream.send(bodyOf(passed.text), isProgress);
  }

  finish(reply: Response): void {
    const { res, form } = this.#posted;
    const passed = this.#hooked(reply) ?? this.#error('proxy/withheld');
    tellAnswer(this.#posted.answerHooks, passed);
    const isLarge = form === 'either' && passed.text.length > EVENT_CHARACTERS;
    const asJson = isLarge || statusOf(passed, this.#posted) !== 200;
    if (!asJson || res.headersSent || res.destroyed) this.#end(passed.text);
    else {
      this.#letGo();
      sendJson(passed, this.#posted);
    }
  }

  fail(code: Code, message?: string): void {
    const { res } = this.#posted;
    const row: CodeRow = CODES[code];
    if (!res.headersSent && row.httpStatus === 503) {
      this.#letGo();
      refuse(res, code, { id: this.#posted.request.id, message });
    } else {
      const error = this.#error(code, message);
      tellAnswer(this.#posted.answerHooks, error);
      this.#end(code === 'proxy/cancelled' ? undefined : error.text);
    }
  }

  #open(): EventStream {
    if (this.#stream !== undefined) return this.#stream;
    const { res, session, clock } = this.#posted;
    this.#stream = session?.openStream('answer') ?? new EventStream(clock);
    this.#stream.attach(new SseSocket(res, this.#posted));
    return this.#stream;
  }

  #end(text?: string): void {
    const { clock, session, headers } = this.#posted;
    if (this.#stream !== undefined) this.#stream.end(text);
    else {
      const stream = session?.newStream('answer') ?? new EventStream(clock);
      sendWhole(stream.finalText(text), { headers: { ...SSE_HEAD, ...headers }, status: 200 }, this.#posted);
    }
    this.#letGo();
  }

  /** The stream says nothing, or nothing more. */
  #letGo(): void {
    this.#opening.cancel();
    if (this.#stream !== undefined) this.#posted.session?.streamDone(this.#stream);
  }

  #hooked(message: Message): Message | undefined {
    const { replyHooks, request } = this.#posted;
    return throughHooks(replyHooks, { message, request });
  }

  #error(code: Code, message?: string): Response {
    return errorOf(this.#posted.request.id, rpcFailure(code, { message }));
  }
}
