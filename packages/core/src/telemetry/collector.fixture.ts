import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll } from 'vitest';
import { decodeOtlp } from './decode-otlp.fixture.ts';

export interface Received {
  readonly path: string;
  /** As OTLP has it in JSON. */
  readonly body: string;
  readonly type: string | undefined;
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

/** A collector of OTLP over HTTP, in protobuf, for the tests of one file. */
export function collectorOfFile(): Collector {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      const body = JSON.stringify(decodeOtlp(path, Buffer.concat(chunks)));
      const { 'x-key': key, 'content-type': type } = request.headers;
      collector.received.push({ path, body, type, key: key?.toString() });
      response.writeHead(collector.status, { 'content-type': 'application/x-protobuf' }).end();
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
