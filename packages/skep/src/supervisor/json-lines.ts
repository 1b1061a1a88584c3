import type { Socket } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Longest line either side accepts, in UTF-16 code units; requests and answers are small. */
export const MAX_LINE_CHARS = 1024 * 1024;

export type Lines = AsyncGenerator<unknown, void, undefined>;

/** The JSON values of a socket's lines, until the other side ends. Fails with `supervisor/protocol` on anything else. */
export async function* readLines(socket: Socket, { destroyOnReturn = true } = {}): Lines {
  socket.setEncoding('utf8');
  let rest = '';
  for await (const chunk of socket.iterator({ destroyOnReturn })) {
    rest += String(chunk);
    for (let end = rest.indexOf('\n'); end !== -1; end = rest.indexOf('\n')) {
      yield parseLine(rest.slice(0, end));
      rest = rest.slice(end + 1);
    }
    if (rest.length > MAX_LINE_CHARS)
      throw new SkepError('supervisor/protocol', { message: 'a line is too long' });
  }
}

export function writeLine(socket: Socket, value: unknown): void {
  // The other side may have gone: its `close` event is what tells, not a failed write.
  if (socket.writable) socket.write(`${JSON.stringify(value)}\n`);
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new SkepError('supervisor/protocol', { message: 'a line is not JSON', cause });
  }
}
