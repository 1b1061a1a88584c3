import type { Call } from '../call/call.ts';
import { oneOff, type BackendPort, type Newcomer, type Peer } from '../backend/port.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { abilitiesOf } from '../message/client-abilities.ts';
import { wantedBy } from '../message/wanted-version.ts';
import { idOf, type Message, type Request, type Response } from '../message/json-rpc.ts';
import { METHODS, SESSION_REQUESTS } from '../message/methods.ts';
import type { ModernCalls } from '../backend/modern/modern-calls.ts';
import { held } from './held.ts';
import { replyForm, type ReplyForm } from './accept.ts';
import { refuse } from '../call/refuse.ts';
import { postModern } from './modern-post.ts';
import { principalOf } from '../call/principal.ts';
import type { ReplicatedSessions } from './replicated-sessions.ts';
import type { Session, Sessions } from './sessions.ts';
import type { UnreadBudget } from './unread-budget.ts';
import { waiterFor, type PostedRequest } from './waiters.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

export interface PostOptions {
  readonly backend: BackendPort;
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly budget: UnreadBudget;
  readonly calls: ModernCalls;
  /** Present where other replicas of the proxy serve the same sessions. */
  readonly replicas?: ReplicatedSessions | undefined;
}

/**
 * Handles a POST by the table of docs/behaviour/proxy.md#streamable-http, from the Accept header downwards. When it
 * returns, nothing of the message is kept here.
 */
export function post(call: Call, options: PostOptions): void {
  const { incoming, identity, res } = call;
  if (incoming === undefined || identity === undefined) throw new SkepError('internal/bug');
  const { message, era } = incoming;
  const id = idOf(message);
  const form = replyForm(call.req.headers.accept);
  if (form === 'neither') refuse(res, 'proxy/not-acceptable', { id });
  else if (era === 'modern') postModern(call, message, { ...options, form });
  else if (message.kind === 'request' && message.method === METHODS.initialize) {
    initialize(call, message, principalOf(identity), { ...options, form });
  } else {
    const sessionId = call.req.headers['mcp-session-id'];
    const session =
      typeof sessionId === 'string' ? options.sessions.find(sessionId, principalOf(identity)) : undefined;
    const isUnknown = sessionId !== undefined && session === undefined;
    if (isUnknown) refuse(res, 'proxy/session-unknown', { id });
    else take(call, message, { ...options, form, session });
  }
}

interface Taking extends PostOptions {
  readonly form: ReplyForm;
  readonly session?: Session | undefined;
}

function take(call: Call, message: Message, taking: Taking): void {
  const { backend, session } = taking;
  const peer: Peer = session ?? oneOff();
  peer.credentials = call.credentials;
  if (message.kind === 'request') {
    ask(call, message, peer, taking);
    return;
  }
  const taken = message.kind === 'response' ? backend.answer(peer, message) : backend.notify(peer, message);
  if (taken) call.res.writeHead(202, { 'Content-Length': '0' }).end();
  else refuse(call.res, backend.state === 'attached' ? 'proxy/busy' : 'proxy/backend-away');
}

function ask(call: Call, request: Request, peer: Peer, taking: Taking): void {
  const { backend, session, clock, budget, form } = taking;
  if (session === undefined && SESSION_REQUESTS.has(request.method)) {
    refuse(call.res, 'proxy/session-needed', { id: request.id });
    return;
  }
  const { res, replyHooks, answerHooks, answerHolds } = call;
  const head = { id: request.id, method: request.method };
  const posted: PostedRequest = {
    res,
    replyHooks,
    answerHooks,
    request: head,
    session,
    clock,
    budget,
    form,
  };
  // Only a session can fetch an answer later (MCP 2025-11-25: a disconnect alone cancels nothing there).
  if (session === undefined) res.once('close', () => backend.gone(peer));
  backend.request(peer, request, held(waiterFor(posted), answerHolds));
}

/** A session exists from the moment the server's answer is known, so a failed initialize leaves nothing behind. */
function initialize(call: Call, request: Request, principal: string, taking: Taking): void {
  const { backend, sessions, replicas, clock, budget, form } = taking;
  // All that is kept while the server may be starting: neither the call nor its request, which have the body.
  const { res, replyHooks, answerHooks } = call;
  const { id, method } = request;
  const abilities = abilitiesOf(request);
  const answer = (reply: Response, session: Session | undefined): void => {
    const headers = session === undefined ? {} : { 'Mcp-Session-Id': session.key };
    const hooks = { replyHooks, answerHooks };
    const posted = { res, ...hooks, request: { id, method }, session, clock, budget, form, headers };
    waiterFor(posted).finish(reply);
  };
  const newcomer: Newcomer = {
    id,
    wanted: wantedBy(request),
    credentials: call.credentials,
    welcome(reply, version, server = null) {
      if (res.destroyed) return undefined;
      const session = sessions.create({ principal, version, abilities });
      if (session === undefined) refuse(res, 'proxy/session-limit', { id });
      else if (replicas === undefined) answer(reply, session);
      // Its client may go on at another replica at once.
      else
        replicas
          .begun(session, server)
          .then(() => answer(reply, session))
          .catch(() => res.destroy());
      return session;
    },
    refuse: (reply) => answer(reply, undefined),
    fail: (code, message) => refuse(res, code, { id, message }),
  };
  res.once('close', backend.initialize(newcomer));
}
