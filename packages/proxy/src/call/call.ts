import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Identity } from '@skep/auth/token/identity.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ReadBody } from '../message/body-message.ts';
import type { Message, RequestHead, Response } from '../message/json-rpc.ts';
import type { SentBody } from './sent-body.ts';
import type { RequestTarget } from './target.ts';

/** One message from the server on its way to a client, and the request it belongs to, if it belongs to one. */
export interface Reply {
  readonly message: Message;
  readonly request: RequestHead | undefined;
}

/**
 * Sees each server message once, parsed, whatever stream it leaves on, and before it is kept for resumption.
 * Gives back the message to send, or `undefined` to keep it from the client.
 */
export type ReplyHook = (reply: Reply) => Message | undefined;

/** Sees the answer to the request of a call before the hooks do, which wait for it; a hook cannot wait. */
export type AnswerHold = (answer: Response) => Promise<void>;
/**
 * Hears the answer that a client gets to its request, once at the most, and changes nothing. Of a server whose bytes are relayed
 * it hears what lies within the first part of the answer.
 */
export type AnswerHook = (answer: Response) => void;

/** What the client sent, once the parser step has read it. */
export interface Incoming {
  readonly message: Message;
  readonly era: 'legacy' | 'modern';
}

/** Answers a request that a step keeps from the server, in the form of the transport that it came over. */
export interface Answerer {
  /** Takes the call before the parser has read it. The answer passes the hooks that the call has by now. */
  answer(call: Call, request: RequestHead, answer: Response): void;
}

/** What shows a server over HTTP who asks: one header. */
export interface Credentials {
  /** In lower case. */
  readonly header: string;
  readonly value: string;
}

/** One HTTP request on its way through the chain. Steps fill the members that the chain table says they write. */
export interface Call {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** The host that the request target names, where it names one (absolute form, RFC 9112 §3.2.2). */
  readonly authority: string | undefined;
  /** What stood before the path where the request came in, such as `/github`; empty on the proxy's own port. */
  readonly prefix: string;
  /** Path and query. */
  readonly target: string;
  /** The request's path without its query. */
  readonly path: string;
  /** Reads the whole body once and keeps it; rejects with `proxy/body-too-large`. Written by `body-limit`. */
  readBody: () => Promise<Buffer>;
  /** What a step has read of the body, so that the next one that asks for the message in the same bytes need not. */
  read: ReadBody | undefined;
  identity: Identity | undefined;
  /** Whoever hosts the proxy asks, and no client of it (`Proxy.pass`). */
  isOwn: boolean;
  incoming: Incoming | undefined;
  /** The message is not as its client sent it: headers that repeat what is in it are made anew. Written by `mutating-webhook`. */
  isChanged: boolean;
  /** What the client signed in with, for nothing but an exchange: never logged, kept or passed on. Written by `auth`. */
  bearer: string | undefined;
  /** What the server is to know of the trace that the call belongs to (W3C Trace Context). Written by `telemetry`. */
  trace: Readonly<Record<string, string>> | undefined;
  /** For the server, in the place of what the client sent under that name. Written by `outgoing-token`. */
  credentials: Credentials | undefined;
  /** Absent where bytes are relayed: no step answers there. */
  answerer: Answerer | undefined;
  /** Outermost step first; they run innermost first, as replies travel outwards. */
  readonly replyHooks: ReplyHook[];
  readonly answerHolds: AnswerHold[];
  readonly answerHooks: AnswerHook[];
  /** The answer takes another way than the response (HTTP with SSE), and hooks hear it later. Written by the face. */
  isAnsweredElsewhere: boolean;
  /** What the response has had for a body, where somebody counts. */
  sent: SentBody | undefined;
}

/** A request as it comes, before any step; `prefix` as in `Call`. */
export function newCall(
  req: IncomingMessage,
  res: ServerResponse,
  { authority, target }: RequestTarget,
  prefix = '',
): Call {
  const query = target.indexOf('?');
  return {
    req,
    res,
    authority,
    prefix,
    target,
    path: query === -1 ? target : target.slice(0, query),
    readBody: () => Promise.reject(new SkepError('internal/bug', { message: 'no step bounds the body' })),
    read: undefined,
    identity: undefined,
    isOwn: false,
    bearer: undefined,
    credentials: undefined,
    trace: undefined,
    incoming: undefined,
    isChanged: false,
    answerer: undefined,
    replyHooks: [],
    answerHolds: [],
    answerHooks: [],
    isAnsweredElsewhere: false,
    sent: undefined,
  };
}

/** Runs the hooks of a call over a server message. */
export function throughHooks(hooks: readonly ReplyHook[], reply: Reply): Message | undefined {
  let message: Message | undefined = reply.message;
  for (let at = hooks.length - 1; at >= 0 && message !== undefined; at -= 1) {
    message = hooks[at]?.({ message, request: reply.request });
  }
  return message;
}

/** Tells everybody who listens how a request was answered. */
export function tellAnswer(hooks: readonly AnswerHook[], answer: Message): void {
  if (answer.kind === 'response') for (const hear of hooks) hear(answer);
}
