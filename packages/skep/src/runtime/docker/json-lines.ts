import type { IncomingMessage } from 'node:http';
import type { Endpoint } from './endpoint.ts';
import { unreachable } from './failure.ts';

/**
 * Yields each JSON value of a progress or event stream. Chunks do not respect lines, and an engine that goes away ends
 * the stream with an error (`runtime/engine-unreachable`), so a cut stream is never taken for a finished one.
 */
export async function* jsonLines(
  response: IncomingMessage,
  endpoint: Endpoint,
  signal: AbortSignal,
): AsyncGenerator {
  const decoder = new TextDecoder();
  let pending = '';
  try {
    for await (const chunk of response) {
      pending += decoder.decode(chunk as Buffer, { stream: true });
      const lines = pending.split('\n');
      pending = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as unknown;
    }
    if (pending.trim() !== '') yield JSON.parse(pending) as unknown;
  } catch (error) {
    throw unreachable(endpoint, error, signal);
  } finally {
    response.destroy();
  }
}
