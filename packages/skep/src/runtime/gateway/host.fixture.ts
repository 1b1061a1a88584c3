import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server on loopback with the Authorization header of every request by path. */
export async function host(handler: RequestListener) {
  const logins: Record<string, string | undefined> = {};
  const server = createServer((request, response) => {
    logins[request.url ?? ''] = request.headers.authorization;
    handler(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, logins };
}
