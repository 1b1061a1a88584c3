import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { Answer } from '../route/route.ts';
import type { AnswersInFlight } from './answers-in-flight.ts';
import type { ApiRequest, Prepared } from './request.ts';

interface Preparing extends Answer {
  /** Who may keep it, where that is not what its tag says. */
  readonly cache?: string;
  readonly encoding?: Encoding;
}

export type Prepare = (answer: Preparing) => Prepared;

/** Calls `fail` when an answer could not be encoded. */
type Fail = (request: ApiRequest, error: unknown) => void;

export interface AnswerSender {
  readonly prepare: Prepare;
  send(request: ApiRequest, prepared: Prepared, fail: Fail): void;
}

export interface SenderParts {
  /** What every answer depends on that a caller of this listener may get. */
  readonly vary: string;
  readonly inFlight: AnswersInFlight;
  /** Absent: no answer is encoded. */
  readonly encoded: EncodedAnswers | undefined;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const COMMON = ['x-content-type-options', 'nosniff', 'cross-origin-resource-policy', 'same-origin'];

/** The one place that writes answers. With a tag they are sent in the encoding that the caller asks for. */
export function answerSender({ vary, inFlight, encoded }: SenderParts): AnswerSender {
  const variesTagged = encoded === undefined ? vary : `${vary}, Accept-Encoding`;
  const prepare: Prepare = ({ status, etag, location, type = JSON_TYPE, body, cache, encoding }) => {
    const content = body?.();
    const pieces = typeof content === 'string' ? [Buffer.from(content)] : (content ?? []);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const headers = ['x-request-id', '', 'vary', etag === undefined ? vary : variesTagged, ...COMMON];
    // With a tag a caller's own cache may keep it and ask whether it still holds; a shared one never keeps anything.
    headers.push('cache-control', cache ?? (etag === undefined ? 'private, no-store' : 'private, no-cache'));
    if (etag !== undefined) headers.push('etag', etag);
    if (location !== undefined) headers.push('location', location);
    const described = content === undefined ? [] : ['content-type', type, 'content-length', `${length}`];
    if (encoding !== undefined) described.push('content-encoding', encoding);
    return { status, etag, headers, withBody: [...headers, ...described], pieces, length };
  };
  const sendEncoded = (request: ApiRequest, plain: Prepared, { encoding, fail }: Encoded): void => {
    const tag = plain.etag ?? '';
    const variant = (content: Buffer): Prepared =>
      prepare({ status: plain.status, etag: encodedTag(tag, encoding), encoding, body: () => [content] });
    const kept = encoded?.get(tag, encoding);
    if (kept !== undefined) write(request, variant(kept), inFlight);
    else if (noneMatch(request.headers['if-none-match'], encodedTag(tag, encoding)))
      write(request, variant(NOTHING), inFlight);
    else if (encoded === undefined || encoded.isBusy || plain.length < MIN_BYTES)
      write(request, plain, inFlight);
    else
      encoded
        .encode(tag, encoding, () => Buffer.concat(plain.pieces))
        .then(
          (content) => write(request, variant(content), inFlight),
          (error: unknown) => fail(request, error),
        );
  };
  return {
    prepare,
    send: (request, prepared, fail) => {
      const accepted = encoded === undefined ? undefined : request.headers['accept-encoding'];
      const encoding =
        accepted === undefined || prepared.etag === undefined ? undefined : chooseEncoding(accepted);
      if (encoding === undefined) write(request, prepared, inFlight);
      else sendEncoded(request, prepared, { encoding, fail });
    },
  };
}

const NOTHING = Buffer.alloc(0);

interface Encoded {
  readonly encoding: Encoding;
  readonly fail: Fail;
}

/**
 * The answer, or 304 when the caller has it already. One array of headers is what `node:http` writes without looking at
 * each twice; it is read at once and nothing of it is kept, so that every answer may use the same one.
 */
function write(request: ApiRequest, prepared: Prepared, inFlight: AnswersInFlight): void {
  const { raw, response, added } = request;
  const { etag, pieces } = prepared;
  const isUnchanged = etag !== undefined && noneMatch(raw.headers['if-none-match'], etag);
  const headers = isUnchanged ? prepared.headers : prepared.withBody;
  headers[1] = request.id;
  response.writeHead(
    isUnchanged ? 304 : prepared.status,
    added.length === 0 ? headers : [...headers, ...added],
  );
  request.responseBytes = isUnchanged ? 0 : prepared.length;
  if (isUnchanged || request.method === 'HEAD' || pieces.length === 0) {
    response.end();
    return;
  }
  const [only] = pieces;
  if (pieces.length === 1) response.end(only);
  else {
    response.cork();
    for (const piece of pieces) response.write(piece);
    response.end();
    response.uncork();
  }
  inFlight.add(response, pieces);
}

/** Whether If-None-Match names the tag; by weak comparison, as RFC 9110 §13.1.2 asks. */
function noneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

type Encoding = 'br' | 'gzip';

const KEPT_BYTES = 32 * 1024 * 1024;
/** At once; the system has a few threads for all of them. */
const MAX_RUNNING = 16;
/** Below this an encoded answer costs more than it saves. */
const MIN_BYTES = 1024;

const compressors: Readonly<Record<Encoding, (content: Buffer) => Promise<Buffer>>> = {
  // The usual default of 11 takes a hundred times as long for a tenth less.
  br: (content) => promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (content) => promisify(gzip)(content, { level: 6 }),
};

/**
 * Encoded answers, kept by entity tag: a page is encoded once, off the main thread, however many callers see it. The
 * tag names the content and the claims it was made for, so an answer can only be found by who may see it.
 */
export class EncodedAnswers {
  readonly #kept = new LRUCache<string, Buffer>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (content) => content.length + 1,
  });
  readonly #running = new Map<string, Promise<Buffer>>();

  get(etag: string, encoding: Encoding): Buffer | undefined {
    return this.#kept.get(keyOf(etag, encoding));
  }

  /** Whether so many are being made that more would only wait, each with its content in memory. */
  get isBusy(): boolean {
    return this.#running.size >= MAX_RUNNING;
  }

  /** Requests for the same answer share one encoding. */
  async encode(etag: string, encoding: Encoding, content: () => Buffer): Promise<Buffer> {
    const key = keyOf(etag, encoding);
    const running = this.#running.get(key) ?? compressors[encoding](content());
    this.#running.set(key, running);
    try {
      const encoded = await running;
      this.#kept.set(key, encoded);
      return encoded;
    } finally {
      this.#running.delete(key);
    }
  }
}

function keyOf(etag: string, encoding: Encoding): string {
  return `${encoding} ${etag}`;
}

/**
 * The encoding that Accept-Encoding asks for most, ours first where it has no preference (RFC 9110 §12.5.3). Undefined:
 * send it as it is.
 */
function chooseEncoding(header: string | readonly string[] | undefined): Encoding | undefined {
  if (header === undefined) return undefined;
  const weights = new Map<string, number>();
  for (const part of String(header).toLowerCase().split(',', 20)) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim());
    const quality = parameters.find((parameter) => parameter.startsWith('q='));
    weights.set(name, quality === undefined ? 1 : Number(quality.slice(2)) || 0);
  }
  const weightOf = (name: string): number => weights.get(name) ?? weights.get('*') ?? 0;
  const [best] = (['br', 'gzip'] as const).toSorted((a, b) => weightOf(b) - weightOf(a));
  const plain = weights.get('identity') ?? 0;
  return best !== undefined && weightOf(best) > 0 && weightOf(best) >= plain ? best : undefined;
}

/** The tag of an encoded form: other bytes, so another tag (RFC 9110 §8.8.3). */
function encodedTag(etag: string, encoding: Encoding): string {
  return `${etag.slice(0, -1)}-${encoding}"`;
}
