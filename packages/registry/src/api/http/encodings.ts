import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';

export type Encoding = 'br' | 'gzip';

const KEPT_BYTES = 32 * 1024 * 1024;
/** At once; the system has a few threads for all of them. */
const MAX_RUNNING = 16;
/** Below this an encoded answer costs more than it saves. */
export const MIN_BYTES = 1024;

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
export function chooseEncoding(header: string | readonly string[] | undefined): Encoding | undefined {
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
export function encodedTag(etag: string, encoding: Encoding): string {
  return `${etag.slice(0, -1)}-${encoding}"`;
}
