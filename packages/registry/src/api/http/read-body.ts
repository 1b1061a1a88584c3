import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { BodiesInFlight } from './bodies-in-flight.ts';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';

/** Bodies arrive as bytes: handlers decide how to read them, and documents inside stay byte for byte. */
export function keepBodiesAsBytes(server: FastifyInstance, inFlight: BodiesInFlight): void {
  server.removeAllContentTypeParsers();
  server.addHook('preParsing', ({ raw }, reply, payload, done) => {
    if (!raw.complete) inFlight.watch(raw, reply.raw);
    done(null, payload);
  });
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}

const JSON_TYPE = /^application\/(?:[\w.!#$&^-]+\+)?json\s*(?:;|$)/i;

/**
 * 415 for a body that does not say that it is JSON (specification §2.2): pages of other origins can send one without a
 * type, or with another, without asking first (Fetch standard, "CORS-safelisted request-header"). Runs after the role was checked and before the body is read.
 */
export const requireJson: onRequestHookHandler = (request, _reply, done) => {
  const type = request.headers['content-type'];
  done(type !== undefined && JSON_TYPE.test(type) ? undefined : new SkepError('registry/unsupported-type'));
};

/** What the framework says about a body, in our words; any other error as it is. */
export function bodyFault(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new SkepError('registry/body-too-large', { cause: error });
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH') {
    const message = 'invalid request body: its length is not the announced one';
    return new SkepError('registry/bad-request', { message, cause: error });
  }
  if (code === 'ECONNRESET') {
    const message = 'invalid request body: the client went away before its end';
    return new SkepError('registry/bad-request', { message, cause: error });
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' || code === 'FST_ERR_CTP_INVALID_TYPE') {
    return new SkepError('registry/unsupported-type', { cause: error });
  }
  return error;
}
