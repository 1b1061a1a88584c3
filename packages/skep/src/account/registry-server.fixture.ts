import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** A request as a registry saw it. */
export interface SeenRequest {
  /** `METHOD path?query`. */
  readonly line: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

/** Status and body, which is JSON but for a buffer; a text is where it redirects to, and null is none at all: the connection ends. */
export type ScriptedAnswer = readonly [status: number, body?: unknown] | string | null | undefined;

/** A server on this machine until the test ends, which answers as told (404 where nothing is). */
export async function registryServer(
  answer: (request: SeenRequest) => ScriptedAnswer | Promise<ScriptedAnswer>,
): Promise<{ readonly address: string; readonly seen: SeenRequest[] }> {
  const seen: SeenRequest[] = [];
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const one = {
        line: `${request.method} ${request.url}`,
        authorization: request.headers.authorization,
        body,
      };
      seen.push(one);
      const given = await answer(one);
      if (given === null) return response.destroy();
      if (given === undefined)
        return response
          .writeHead(404, { 'content-type': 'application/json' })
          .end('{"error":"no such endpoint"}');
      if (typeof given === 'string') return response.writeHead(302, { location: given }).end();
      const [status, content] = given;
      response.writeHead(status, { 'content-type': 'application/json' });
      return response.end(
        content === undefined || Buffer.isBuffer(content) ? content : JSON.stringify(content),
      );
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}
