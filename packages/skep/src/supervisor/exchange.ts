import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readAnswer, tellNobody, type Tell, fromFailure, type Request } from './protocol.ts';
import type { Connection } from './connect.ts';
import { writeLine } from './json-lines.ts';

export interface CallOptions {
  readonly tell?: Tell;
  /** Closes the connection; the supervisor undoes a start that is under way. */
  readonly signal: AbortSignal;
}

/**
 * Sends one request and answers with its result; the connection is used up then. Fails as the supervisor did, with
 * `supervisor/unreachable` when the connection breaks, or with the signal's reason.
 */
export async function exchange(
  { socket, lines }: Connection,
  request: Request,
  { tell = tellNobody, signal }: CallOptions,
): Promise<unknown> {
  const cut = (): void => {
    socket.destroy();
  };
  signal.addEventListener('abort', cut, { once: true });
  try {
    signal.throwIfAborted();
    writeLine(socket, request);
    for await (const line of lines) {
      const answer = readAnswer(line);
      if ('event' in answer) tell(answer.event);
      else if ('error' in answer) throw fromFailure(answer.error);
      else return answer.result;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SkepError) throw error;
    throw new SkepError('supervisor/unreachable', {
      message: 'the connection to the supervisor broke',
      cause: error,
    });
  } finally {
    signal.removeEventListener('abort', cut);
    socket.destroy();
  }
  signal.throwIfAborted();
  throw new SkepError('supervisor/unreachable', { message: 'the supervisor ended before it had answered' });
}
