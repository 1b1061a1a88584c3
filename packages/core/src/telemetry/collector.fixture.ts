import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll } from 'vitest';

export interface Received {
  readonly path: string;
  readonly body: string;
  /** The header `x-key`. */
  readonly key: string | undefined;
}

export interface Collector {
  readonly server: Server;
  readonly received: Received[];
  /** What it answers with. */
  status: number;
  /** Its address, once the tests begin. */
  endpoint: string;
}

/** A collector of OTLP over HTTP, in JSON, for the tests of one file. */
export function collectorOfFile(): Collector {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      collector.received.push({ path: request.url ?? '', body, key: request.headers['x-key']?.toString() });
      response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}');
    });
  });
  const collector: Collector = { server, received: [], status: 200, endpoint: '' };
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    collector.endpoint = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return collector;
}
