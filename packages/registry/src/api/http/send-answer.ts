import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AnswersInFlight } from './answers-in-flight.ts';
import { chooseEncoding, type EncodedAnswers, encodedTag, type Encoding, MIN_BYTES } from './encodings.ts';
import { noneMatch } from './entity-tag.ts';
import type { Answer } from '../route/route.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

export type SendAnswer = (request: FastifyRequest, reply: FastifyReply, answer: Answer) => void;

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly inFlight: AnswersInFlight;
}

/** Sends answers; with `encoded` in the encoding that the caller asks for. */
export function answerSender(encoded: EncodedAnswers | undefined, inFlight: AnswersInFlight): SendAnswer {
  return (request, reply, answer) => {
    const { status, etag, location, type = JSON_TYPE, body } = answer;
    // With a tag a caller's own cache may keep it and ask whether it still holds; a shared one never keeps anything.
    reply
      .code(status)
      .header('cache-control', etag === undefined ? 'private, no-store' : 'private, no-cache');
    if (location !== undefined) reply.header('location', location);
    if (body === undefined) {
      reply.send();
      return;
    }
    const exchange = { request, reply, inFlight };
    if (etag === undefined) {
      reply.type(type);
      sendContent(exchange, body());
    } else if (encoded === undefined) sendTagged(exchange, { etag, body });
    else sendEncoded(exchange, { etag, body }, encoded);
  };
}

type Tagged = Required<Pick<Answer, 'etag' | 'body'>>;

/** The answer, or 304 when the caller has it already. */
function sendTagged(exchange: Exchange, { etag, body }: Tagged): void {
  if (sentUnchanged(exchange, etag)) return;
  exchange.reply.type(JSON_TYPE);
  sendContent(exchange, body());
}

function sentUnchanged({ request, reply }: Exchange, etag: string): boolean {
  reply.header('etag', etag);
  const unchanged = noneMatch(request.headers['if-none-match'], etag);
  if (unchanged) reply.code(304).send();
  return unchanged;
}

/**
 * As sendTagged, encoded. 304 comes first and costs no encoding; an answer that is too small keeps its plain form, which
 * has a tag of its own.
 */
function sendEncoded(exchange: Exchange, { etag, body }: Tagged, encoded: EncodedAnswers): void {
  const { request, reply } = exchange;
  reply.header('vary', `${String(reply.getHeader('vary'))}, Accept-Encoding`);
  const encoding = chooseEncoding(request.headers['accept-encoding']);
  if (encoding === undefined) {
    sendTagged(exchange, { etag, body });
    return;
  }
  const tag = encodedTag(etag, encoding);
  if (noneMatch(request.headers['if-none-match'], tag)) {
    reply.header('etag', tag).code(304).send();
    return;
  }
  const kept = encoded.get(etag, encoding);
  if (kept !== undefined) {
    sendVariant(exchange, { tag, encoding, content: kept });
    return;
  }
  if (encoded.isBusy) {
    sendTagged(exchange, { etag, body });
    return;
  }
  const content = joined(body());
  if (content.length < MIN_BYTES) {
    sendTagged(exchange, { etag, body: () => [content] });
    return;
  }
  encoded
    .encode(etag, encoding, () => content)
    .then(
      (variant) => sendVariant(exchange, { tag, encoding, content: variant }),
      (error: unknown) => reply.send(error),
    );
}

interface Variant {
  readonly tag: string;
  readonly encoding: Encoding;
  readonly content: Buffer;
}

function sendVariant(exchange: Exchange, { tag, encoding, content }: Variant): void {
  exchange.reply.headers({ etag: tag, 'content-encoding': encoding }).type(JSON_TYPE);
  sendBytes(exchange, content);
}

function sendBytes({ request, reply, inFlight }: Exchange, bytes: Buffer): void {
  reply.send(bytes);
  if (request.method !== 'HEAD') inFlight.add(reply.raw, [bytes]);
}

function joined(content: string | readonly Buffer[]): Buffer {
  return typeof content === 'string' ? Buffer.from(content) : Buffer.concat(content);
}

/** Stored bytes go to the socket as they lie in memory: one length, one write, no copy. */
function sendContent(exchange: Exchange, content: string | readonly Buffer[]): void {
  if (typeof content === 'string') {
    sendBytes(exchange, Buffer.from(content));
    return;
  }
  const [only] = content;
  if (content.length === 1 && only !== undefined) {
    sendBytes(exchange, only);
    return;
  }
  const { request, reply, inFlight } = exchange;
  reply.header(
    'content-length',
    content.reduce((sum, piece) => sum + piece.length, 0),
  );
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(reply.statusCode, headersOf(reply));
  if (request.method !== 'HEAD') {
    raw.cork();
    for (const piece of content) raw.write(piece);
    raw.uncork();
    inFlight.add(raw, content);
  }
  raw.end();
}

function headersOf(reply: FastifyReply): Record<string, number | string | string[]> {
  return Object.fromEntries(
    Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
}
