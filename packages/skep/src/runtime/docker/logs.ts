import type { IncomingMessage } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { LogChunk, LogRequest } from '../runtime.ts';
import { readBody, type EngineClient } from './client.ts';
import { Demultiplexer, type Frame } from './demultiplex.ts';
import { refused, unreachable } from './failure.ts';

/** What a container wrote. Following ends with the container, with the signal, or with an error of the engine. */
export async function* containerLogs(
  client: EngineClient,
  name: string,
  request: LogRequest,
): AsyncGenerator<LogChunk> {
  if (request.signal.aborted) return;
  const response = await client.stream({
    method: 'GET',
    path: `/containers/${name}/logs`,
    query: {
      stdout: '1',
      stderr: '1',
      follow: request.follow ? '1' : '0',
      tail: request.tail === undefined ? 'all' : String(request.tail),
    },
    signal: request.signal,
  });
  if (response.statusCode !== 200) {
    const answer = {
      status: response.statusCode ?? 0,
      body: await readBody(response, client.endpoint, request.signal),
    };
    if (answer.status === 404)
      throw new SkepError('runtime/no-such-workload', { message: `no workload "${name}"` });
    throw refused(`read the logs of "${name}"`, answer);
  }
  yield* frames(client, response, request.signal);
}

async function* frames(
  client: EngineClient,
  response: IncomingMessage,
  signal: AbortSignal,
): AsyncGenerator<LogChunk> {
  const demultiplexer = new Demultiplexer();
  try {
    for await (const chunk of response) {
      const found: Frame[] = [];
      demultiplexer.take(chunk as Buffer, (stream, bytes) => found.push({ stream, bytes }));
      yield* found;
    }
  } catch (error) {
    if (!signal.aborted) throw unreachable(client.endpoint, error);
  } finally {
    response.destroy();
  }
}
