import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { toHttp } from '@skep/core/errors/to-http.ts';

/** Answers what never became a request: broken syntax, oversized headers, a client that is too slow. */
export function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  // Nothing can be said to a connection that is gone, or in the middle of another answer.
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const { status, body } = toHttp(reasonFor(error.code));
  const head = [
    `HTTP/1.1 ${String(status)} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${String(Buffer.byteLength(body))}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

function reasonFor(code: string | undefined): SkepError {
  if (code === 'HPE_HEADER_OVERFLOW') return new SkepError('registry/headers-too-large');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new SkepError('registry/request-timeout');
  return new SkepError('registry/bad-request', { message: 'the request is not HTTP/1.1' });
}
