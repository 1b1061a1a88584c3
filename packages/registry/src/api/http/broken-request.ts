import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { toHttp } from '@skep/core/errors/to-http.ts';

/**
 * Answers what never became a request: broken syntax, oversized headers, a client that is too slow. Also on a connection
 * that was used before, as those of client libraries are: without an answer they could not tell why it was cut.
 */
export class BrokenRequests {
  /** The answer to the last request of a connection. */
  readonly #last = new WeakMap<Duplex, ServerResponse>();

  /** Notes a request that has begun. */
  begin({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#last.set(socket, response);
  }

  answer(error: NodeJS.ErrnoException, socket: Duplex): void {
    // Nothing can be said to a connection that is gone, or to a request that has or will have another answer.
    if (error.code === 'ECONNRESET' || !socket.writable || this.#hasAnswer(socket)) {
      socket.destroy();
      return;
    }
    const { status, body } = toHttp(reasonFor(error.code));
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'X-Content-Type-Options: nosniff',
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  }

  #hasAnswer(socket: Duplex): boolean {
    const response = this.#last.get(socket);
    if (response === undefined) return false;
    // One that is not complete is the broken one itself: nothing can follow it.
    return response.req.complete ? !response.writableFinished : response.headersSent;
  }
}

function reasonFor(code: string | undefined): SkepError {
  if (code === 'HPE_HEADER_OVERFLOW') return new SkepError('registry/headers-too-large');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new SkepError('registry/request-timeout');
  const message =
    code === 'HPE_INVALID_URL'
      ? 'the request target holds a character that must be percent-encoded'
      : 'the request is not HTTP/1.1';
  return new SkepError('registry/bad-request', { message });
}
