import { SkepError } from '@skep/core/errors/skep-error.ts';
import { toHttp } from '@skep/core/errors/to-http.ts';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
  onRequestHookHandler,
} from 'fastify';
import { enforce } from '../../access/decision.ts';
import { decideRole } from '../../access/gate.ts';
import { RESERVED_NAMES } from '../../config/shape.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { identify, identifyAgain, type Identification } from './identify.ts';
import type { RawParameters } from '../route/parameter.ts';
import { requireJson } from './read-body.ts';
import type { Access, Answer, ApiContext, Method, Route } from '../route/route.ts';
import type { SendAnswer } from './send-answer.ts';

interface Shape {
  readonly Params: RawParameters;
  readonly Querystring: RawParameters;
}

type TableRequest = FastifyRequest<Shape>;

interface Exchange {
  readonly request: TableRequest;
  readonly reply: FastifyReply;
}

export interface RouterParts {
  readonly context: ApiContext;
  readonly clock: Clock;
  readonly send: SendAnswer;
  readonly identification: Identification;
  /** How long a handler may take (specification §2.1). */
  readonly requestMs: number;
  /** Runs when it is known who asks, before roles and the body. */
  readonly admit: onRequestHookHandler | undefined;
}

const NO_BODY = Buffer.alloc(0);

/** Registers the rows of the table, and 405 for every other method on their paths. */
export function addRoutes(server: FastifyInstance, routes: readonly Route[], parts: RouterParts): void {
  const methods = new Map<string, Set<Method>>();
  for (const route of routes) {
    for (const path of route.paths) {
      addRoute(server, { route, path }, parts);
      methods.set(path, (methods.get(path) ?? new Set()).add(route.method));
    }
  }
  for (const [path, allowed] of methods) refuseOtherMethods(server, { path, allowed }, parts);
}

function addRoute(
  server: FastifyInstance,
  { route, path }: { readonly route: Route; readonly path: string },
  parts: RouterParts,
): void {
  const { body } = route;
  // The root form must not capture the first segments of other endpoints.
  const capturing = path.startsWith('/{registry}/');
  const { identification, admit } = parts;
  const roles = typeof route.access === 'object' ? [requireRole(route.access)] : [];
  server.route<Shape>({
    method: route.method,
    url: routerPath(path),
    ...(body === undefined ? {} : { bodyLimit: body.maxBytes }),
    onRequest: [
      identify(identification, route.access),
      ...(admit === undefined ? [] : [admit]),
      ...roles,
      ...(body === undefined ? [] : [requireJson]),
    ],
    ...(route.method === 'GET' ? {} : { preHandler: identifyAgain(identification, route.access, roles) }),
    handler: (request, reply) => {
      if (capturing && RESERVED_NAMES.has(String(request.params['registry']))) {
        throw new SkepError('registry/no-such-route');
      }
      respond(route, parts, { request, reply });
    },
  });
}

/** `{name}` in the router's notation. */
function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/**
 * Calls the handler and sends what it answers. Not an async function: awaiting a reply costs more than the whole of a
 * small answer, and reads have nothing to wait for.
 */
function respond(route: Route, parts: RouterParts, { request, reply }: Exchange): void {
  const { authority } = request;
  if (authority === undefined) throw new SkepError('internal/bug', { message: 'nobody was identified' });
  const body = Buffer.isBuffer(request.body) ? request.body : NO_BODY;
  const { params: path, query, socket: connection } = request;
  const call = { authority, path, query, body, connection };
  const answer = route.handle(parts.context, call);
  if (answer instanceof Promise) sendLater(answer, { request, reply }, parts);
  else parts.send(request, reply, answer);
}

/** A handler that takes too long goes on, because what it writes may be half done; only its caller stops waiting. */
function sendLater(
  answer: Promise<Answer>,
  { request, reply }: Exchange,
  { clock, requestMs, send }: RouterParts,
): void {
  let late = false;
  const { cancel } = clock.after(requestMs, () => {
    late = true;
    reply.send(new SkepError('registry/handler-timeout'));
  });
  answer
    .then((ready) => late || send(request, reply, ready))
    .catch((error: unknown) => late || reply.send(error))
    .finally(cancel);
}

/** The role comes before parameters, body and existence, so that its absence is all that a caller learns. */
function requireRole({ role }: Extract<Access, object>): onRequestHookHandler {
  return (request, _reply, done) => {
    if (request.authority === undefined)
      throw new SkepError('internal/bug', { message: 'nobody was identified' });
    enforce(decideRole(request.authority, role));
    done();
  };
}

/** Answered before a body is read: nothing it could hold would be used. */
function refuseOtherMethods(
  server: FastifyInstance,
  { path, allowed }: { readonly path: string; readonly allowed: ReadonlySet<string> },
  { identification }: RouterParts,
): void {
  const { status, body } = toHttp(new SkepError('registry/method-not-allowed'));
  const method = server.supportedMethods.filter(
    (name): name is HTTPMethods => !allowed.has(name) && !(name === 'HEAD' && allowed.has('GET')),
  );
  const allow = [...allowed].flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : [name])).join(', ');
  server.route({
    method,
    url: routerPath(path),
    onRequest: [
      identify(identification, 'nothing'),
      (_request, reply, done) => {
        reply.code(status).header('allow', allow).type('application/json; charset=utf-8').send(body);
        done();
      },
    ],
    handler: (_request, reply) => reply,
  });
}
