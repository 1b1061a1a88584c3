import type { IncomingMessage, ServerResponse } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ApiRequest, Run } from './request.ts';

const JSON_TYPE = /^application\/(?:[\w.!#$&^-]+\+)?json\s*(?:;|$)/i;
/** Bytes that a request may bring whose row takes none. */
const MAX_UNUSED = 1024 * 1024;
/** Bytes that are read for nobody, so that their sender hears why. */
const MAX_UNREAD = 64 * 1024 * 1024;

/**
 * 415 for a body that does not say that it is JSON: pages of other origins can send one without a type, or with another,
 * without asking first (Fetch standard, "CORS-safelisted request-header").
 */
export function requireJson({ row, headers }: ApiRequest): undefined {
  const type = headers['content-type'];
  if (row?.body === undefined || (type !== undefined && JSON_TYPE.test(type))) return undefined;
  throw new SkepError('registry/unsupported-type');
}

/**
 * Reads the body as bytes: handlers decide how to read them, and documents inside stay byte for byte. Fails with
 * `registry/body-too-large`, and with `registry/bad-request` when the client goes away.
 */
export function readBody(inFlight: BodiesInFlight): Run {
  return (request) => {
    const { raw, method, headers, response } = request;
    const { 'content-length': length = '0', 'transfer-encoding': coding } = headers;
    if (method === 'GET' || method === 'HEAD' || (coding === undefined && length === '0')) return undefined;
    const max = request.row?.body?.maxBytes ?? MAX_UNUSED;
    const read = async (): Promise<undefined> => {
      try {
        if (Number(length) > max) throw new SkepError('registry/body-too-large');
        if (!raw.complete) inFlight.watch(raw, response);
        request.body = await bytesOf(raw, max);
      } catch (error) {
        closeUnlessBounded(request);
        throw error;
      }
      return undefined;
    };
    return read();
  };
}

function bytesOf(raw: IncomingMessage, max: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let received = 0;
  raw.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (received > max) reject(new SkepError('registry/body-too-large'));
    else chunks.push(chunk);
  });
  raw.once('end', () => resolve(Buffer.concat(chunks)));
  raw.once('error', (cause) => {
    const message = 'invalid request body: the client went away before its end';
    reject(new SkepError('registry/bad-request', { message, cause }));
  });
  return promise;
}

/**
 * Closes the connection of a body that is not taken, except where its length is known and bounded: a client that is
 * still sending would meet a reset in place of the answer, so that one is read and thrown away, for no longer than any
 * request may take.
 */
export function closeUnlessBounded({ raw, added }: ApiRequest): void {
  if (!isBounded(raw)) added.push('connection', 'close');
}

/** Reads what is left of a refused request. */
export function readToItsEnd({ raw }: ApiRequest): void {
  if (isBounded(raw) && !raw.complete) raw.resume();
}

function isBounded({ headers }: IncomingMessage): boolean {
  return Number(headers['content-length']) <= MAX_UNREAD;
}

/** Bodies that are not complete, together: what two dozen of the largest take. */
const MAX_BYTES = 256 * 1024 * 1024;

/**
 * The memory of bodies that have not arrived whole. Each is bounded, but a caller can begin as many as it likes and end none.
 * Beyond the bound the connection whose body began first is cut: who sends is quicker.
 */
export class BodiesInFlight {
  readonly #most: number;
  /** Those that began first come first. */
  readonly #unfinished = new Map<IncomingMessage, number>();
  #bytes = 0;

  constructor(most = MAX_BYTES) {
    this.#most = most;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts what arrives until it is all there, or until it is answered: the rest of it is kept no more. */
  watch(request: IncomingMessage, response: Pick<ServerResponse, 'once'>): void {
    const take = (chunk: Buffer): void => this.#take(request, chunk.length);
    const end = (): void => {
      request.off('data', take);
      this.#bytes -= this.#unfinished.get(request) ?? 0;
      this.#unfinished.delete(request);
    };
    this.#unfinished.set(request, 0);
    request.on('data', take).once('end', end).once('close', end);
    response.once('finish', end);
  }

  #take(request: IncomingMessage, bytes: number): void {
    this.#bytes += bytes;
    this.#unfinished.set(request, (this.#unfinished.get(request) ?? 0) + bytes);
    for (const [first, held] of this.#unfinished) {
      if (this.#bytes <= this.#most || first === request) return;
      this.#unfinished.delete(first);
      this.#bytes -= held;
      first.socket.destroy();
    }
  }
}
