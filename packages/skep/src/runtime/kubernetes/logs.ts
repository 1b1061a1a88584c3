import type { LogChunk, LogRequest } from '../runtime.ts';
import type { ClusterApi } from './cluster-api.ts';
import { CONTAINER } from './objects.ts';

/** A line may be a message of many megabytes; what is longer is told apart by its beginning. */
const MAX_LINE = 64 * 1024;
/** A message of the protocol, behind the time of the line where that was asked for. */
const MESSAGE = /^(?:\d{4}-\d\d-\d\dT\S+ )?\s*[[{].{0,200}"jsonrpc"/s;

/**
 * The log of a pod's container. A cluster does not say which stream a line is of: of a server that speaks over stdio, lines that
 * are messages of the protocol are stdout, all others stderr.
 */
export async function* podLog(
  api: ClusterApi,
  pod: { readonly name: string; readonly previous: boolean },
  { follow, tail, since, timestamps, signal }: LogRequest,
): AsyncGenerator<LogChunk> {
  const query = {
    container: CONTAINER,
    ...(pod.previous ? { previous: 'true' } : {}),
    ...(follow && !pod.previous ? { follow: 'true' } : {}),
    ...(tail === undefined ? {} : { tailLines: String(tail) }),
    ...(since === undefined ? {} : { sinceTime: new Date(since).toISOString() }),
    ...(timestamps === true ? { timestamps: 'true' } : {}),
  };
  const body = await api.log(pod.name, query, signal);
  if (body === undefined) return;
  try {
    yield* chunks(body as AsyncIterable<Buffer>);
  } catch (error) {
    // A log that breaks off, or that nobody wants any more, has no more lines.
    if (!signal.aborted && !(error instanceof Error)) throw error;
  } finally {
    body.on('error', () => undefined).destroy();
  }
}

async function* chunks(body: AsyncIterable<Buffer>): AsyncGenerator<LogChunk> {
  let rest = Buffer.alloc(0);
  let stream: LogChunk['stream'] | undefined;
  for await (const chunk of body) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end >= 0 || rest.length > MAX_LINE; end = rest.indexOf(10)) {
      const bytes = rest.subarray(0, end < 0 ? rest.length : end + 1);
      rest = rest.subarray(bytes.length);
      stream ??= streamOf(bytes);
      yield { stream, bytes };
      if (end >= 0) stream = undefined;
    }
  }
  if (rest.length > 0) yield { stream: stream ?? streamOf(rest), bytes: rest };
}

function streamOf(line: Buffer): LogChunk['stream'] {
  return MESSAGE.test(line.subarray(0, 400).toString('utf8')) ? 'stdout' : 'stderr';
}
