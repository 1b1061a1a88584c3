import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Different pages together: what a few dozen of the largest take. */
const MAX_BYTES = 256 * 1024 * 1024;
/** The system takes smaller answers at once, whether or not they are read. */
const MIN_BYTES = 64 * 1024;

/**
 * The memory of answers that callers have asked for and not read yet. Beyond the bound the connection that has waited
 * longest is cut: who asks for many pages and reads none would otherwise take all memory, and those who read are quicker.
 * A page that several callers wait for counts once, and bytes that lie in the snapshot anyway do not count.
 */
export class AnswersInFlight {
  readonly #most: number;
  /** Those that have waited longest first. */
  readonly #unread = new Map<Socket, Map<ServerResponse, readonly Buffer[]>>();
  readonly #holders = new Map<Buffer, number>();
  #bytes = 0;

  constructor(most = MAX_BYTES) {
    this.#most = most;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Notes what is being sent. */
  add(response: ServerResponse, pieces: readonly Buffer[]): void {
    const { socket } = response.req;
    if (!pieces.some(isCounted) || response.closed || socket.destroyed) return;
    const own = pieces.filter(isCounted);
    const answers = this.#unread.get(socket) ?? new Map<ServerResponse, readonly Buffer[]>();
    this.#unread.set(socket, answers.set(response, own));
    for (const piece of own) this.#hold(piece, 1);
    response.once('close', () => this.#forget(socket, response));
    for (const longest of this.#unread.keys()) {
      if (this.#bytes <= this.#most || longest === socket) return;
      this.#forgetAll(longest);
      longest.destroy();
    }
  }

  #forgetAll(socket: Socket): void {
    for (const response of this.#unread.get(socket)?.keys() ?? []) this.#forget(socket, response);
  }

  #forget(socket: Socket, response: ServerResponse): void {
    const answers = this.#unread.get(socket);
    for (const piece of answers?.get(response) ?? []) this.#hold(piece, -1);
    answers?.delete(response);
    if (answers?.size === 0) this.#unread.delete(socket);
  }

  #hold(piece: Buffer, by: 1 | -1): void {
    const before = this.#holders.get(piece) ?? 0;
    const now = before + by;
    if (now === 0) this.#holders.delete(piece);
    else this.#holders.set(piece, now);
    if (before === 0 || now === 0) this.#bytes += by * piece.byteLength;
  }
}

/** A large piece that has its memory for itself. */
function isCounted(piece: Buffer): boolean {
  return piece.byteLength >= MIN_BYTES && piece.byteLength === piece.buffer.byteLength;
}
