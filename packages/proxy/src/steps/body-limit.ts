import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import type { BodyBudget, HeldBody, Yielding } from './body-budget.ts';

/**
 * Bounds what a later step may read, of one request and of all together. A declared length over the limit is refused before
 * a byte of it is read. The body counts until the later steps are done with it: the transport step is when it has gone on.
 */
export function bodyLimit(limitBytes: number, budget: BodyBudget): Step {
  return async (call, next) => {
    if (Number(call.req.headers['content-length'] ?? 0) > limitBytes) {
      throw new SkepError('proxy/body-too-large');
    }
    const arrival = new Arrival(call, limitBytes, budget);
    call.readBody = once(() => arrival.read());
    try {
      await next();
    } finally {
      arrival.held.release();
    }
  };
}

/**
 * V8 makes a function that is written where it is assigned to a property among its old objects. Together with all that it
 * leads to, which here is the whole call, it then stays until a full collection (bench/attach.ts measures the pauses).
 */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** Listeners outlive the call where the connection does, so nothing here leads to the body once it is read. */
class Arrival implements Yielding {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #limit: number;
  readonly held: HeldBody;
  #chunks: Buffer[] = [];
  #size = 0;
  #done: ((body: Buffer) => void) | undefined;
  #fail: ((error: SkepError) => void) | undefined;

  constructor({ req, res }: Pick<Call, 'req' | 'res'>, limitBytes: number, budget: BodyBudget) {
    this.#req = req;
    this.#res = res;
    this.#limit = limitBytes;
    this.held = budget.hold(this);
  }

  /** One that is unfinished is refused; what has arrived whole is held up by the server behind, and its client is cut off. */
  giveWay(): void {
    if (this.#fail === undefined) this.#res.destroy();
    else this.#stop('proxy/bodies-unfinished');
  }

  read(): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    this.#done = resolve;
    this.#fail = reject;
    const req = this.#req;
    req.on('data', (chunk: Buffer) => this.#take(chunk));
    req.on('end', () => this.#end());
    req.on('error', () => this.#stop('proxy/client-gone'));
    req.on('close', () => this.#stop('proxy/client-gone'));
    return promise;
  }

  #take(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#limit) {
      this.#stop('proxy/body-too-large');
      return;
    }
    this.#chunks.push(chunk);
    this.held.add(chunk.length);
  }

  #stop(code: Code): void {
    if (this.#fail === undefined) return;
    this.#req.pause();
    this.#size = Infinity;
    this.#fail(new SkepError(code));
    this.#forget();
  }

  #end(): void {
    const [first = Buffer.alloc(0), ...more] = this.#chunks;
    this.#done?.(more.length === 0 ? first : Buffer.concat([first, ...more]));
    this.#forget();
  }

  /** Whoever can settle a promise holds its value too. */
  #forget(): void {
    this.#chunks = [];
    this.#done = undefined;
    this.#fail = undefined;
  }
}
