import type { ServerResponse } from 'node:http';

/** Refusals are no longer than this; other bodies are not kept. */
const MAX_REFUSAL_CHARS = 16 * 1024;

/** Counts what a response has for a body, and keeps the text of a refusal. */
export class SentBody {
  bytes = 0;
  #refusal: string | undefined;

  /** From now on, whatever is written to `res`. */
  static of(res: ServerResponse): SentBody {
    const body = new SentBody();
    watch(res, 'write', body);
    watch(res, 'end', body);
    return body;
  }

  /** The body of an answer with a status of 400 or more that was sent in one piece. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  take(piece: unknown, res: ServerResponse): void {
    if (typeof piece === 'string') {
      if (this.bytes === 0 && res.statusCode >= 400 && piece.length <= MAX_REFUSAL_CHARS)
        this.#refusal = piece;
      this.bytes += Buffer.byteLength(piece);
    } else if (ArrayBuffer.isView(piece)) this.bytes += piece.byteLength;
  }
}

/** A function of its own, so that it leads to nothing but the two (see `once` in steps/body-limit.ts). */
function watch(res: ServerResponse, name: 'write' | 'end', body: SentBody): void {
  const send = res[name].bind(res) as (...given: readonly unknown[]) => unknown;
  Object.assign(res, {
    [name]: (...given: readonly unknown[]): unknown => {
      body.take(given[0], res);
      return send(...given);
    },
  });
}
