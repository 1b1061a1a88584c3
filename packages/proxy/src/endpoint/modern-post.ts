import type { IncomingHttpHeaders } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { ModernCalls } from '../backend/modern/modern-calls.ts';
import type { Peer } from '../backend/port.ts';
import type { Call } from '../call/call.ts';
import { principalOf } from '../call/principal.ts';
import { refuse } from '../call/refuse.ts';
import { abilitiesIn } from '../message/client-abilities.ts';
import { inMeta, META } from '../message/envelope.ts';
import type { Message, Request } from '../message/json-rpc.ts';
import { METHODS } from '../message/methods.ts';
import { acceptsStream, type ReplyForm } from './accept.ts';
import { held } from './held.ts';
import type { UnreadBudget } from './unread-budget.ts';
import { waiterFor } from './waiters.ts';

interface ModernPost {
  readonly clock: Clock;
  readonly budget: UnreadBudget;
  readonly calls: ModernCalls;
  readonly form: ReplyForm;
}

/** A POST of the stateless revision (MCP 2026-07-28, Streamable HTTP): the end of its connection is what cancels it. */
export function postModern(call: Call, message: Message, options: ModernPost): void {
  const { req, res, identity, replyHooks, answerHooks, answerHolds } = call;
  if (identity === undefined) throw new SkepError('internal/bug');
  if (message.kind === 'response') refuse(res, 'proxy/not-json-rpc');
  // Ids of requests are no names among clients without sessions, so a notification can be about none.
  else if (message.kind === 'notification') res.writeHead(202, { 'Content-Length': '0' }).end();
  else {
    const { calls, clock, budget } = options;
    const { id, method } = message;
    const form = formFor(method, req.headers.accept, options.form);
    if (form === 'neither') {
      refuse(res, 'proxy/not-acceptable', { id });
      return;
    }
    const headers = call.isChanged ? undefined : paramHeaders(req.headers);
    const peer = { ...callOf(message, principalOf(identity)), headers, credentials: call.credentials };
    const hooks = { replyHooks, answerHooks };
    const posted = { res, ...hooks, request: { id, method }, session: undefined, clock, budget, form };
    res.once('close', () => calls.gone(peer));
    calls.request(peer, message, held(waiterFor({ ...posted, isModern: true }), answerHolds));
  }
}

/** What is listened to has no other form than a stream. */
function formFor(method: string, accept: string | undefined, form: ReplyForm): ReplyForm {
  if (method !== METHODS.listen) return form;
  return accept === undefined || acceptsStream(accept) ? 'stream' : 'neither';
}

/** What repeats arguments. */
function paramHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const given = Object.entries(headers).filter(([name]) => name.startsWith('mcp-param-'));
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

function callOf(message: Request, principal: string): Peer {
  const level = inMeta(message, META.logLevel);
  return {
    kind: 'call',
    key: principal,
    listener: undefined,
    abilities: abilitiesIn(inMeta(message, META.capabilities)),
    logLevel: typeof level === 'string' ? level : undefined,
    unanswered: 0,
  };
}
