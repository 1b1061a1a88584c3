import type { ServerResponse } from 'node:http';

/**
 * Responses that have not ended. Each has a place, which the next one takes: a `Set` is made anew after every few dozen of
 * them, and what stood in the old one then outlives the quick collections of V8, with its request and all it holds.
 */
export class OpenResponses implements Iterable<ServerResponse> {
  readonly #places: (ServerResponse | undefined)[] = [];
  readonly #free: number[] = [];

  /** Until it has closed. */
  add(response: ServerResponse): void {
    const at = this.#free.pop() ?? this.#places.length;
    this.#places[at] = response;
    response.on('close', () => {
      if (this.#places[at] !== response) return;
      this.#places[at] = undefined;
      this.#free.push(at);
    });
  }

  *[Symbol.iterator](): Iterator<ServerResponse> {
    for (const response of this.#places) if (response !== undefined) yield response;
  }
}
