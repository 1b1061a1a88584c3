import { noSuchWorkload } from '../workload-name.ts';
import type { LogChunk, LogRequest } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import { containerPath } from './containers.ts';
import { Demultiplexer, type Frame } from './demultiplex.ts';
import { refused, unreachable } from './failure.ts';

/** What a container wrote. Following ends with the container, with the signal, or with an error of the engine. */
export async function* containerLogs(
  client: EngineClient,
  name: string,
  request: LogRequest,
): AsyncGenerator<LogChunk> {
  if (request.signal.aborted) return;
  const { follow, tail, since, timestamps, signal } = request;
  const query = {
    stdout: '1',
    stderr: '1',
    follow: follow ? '1' : '0',
    tail: String(tail ?? 'all'),
    ...(timestamps === true ? { timestamps: '1' } : {}),
    // Seconds, with a fraction (Engine API, ContainerLogs).
    ...(since === undefined ? {} : { since: (Math.max(0, since) / 1000).toFixed(3) }),
  };
  const response = await client.stream({ path: containerPath(name, '/logs'), query, signal }, (answer) =>
    answer.status === 404 ? noSuchWorkload(name) : refused(`read the logs of "${name}"`, answer),
  );
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
