import type { IncomingMessage, ServerResponse } from 'node:http';

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
