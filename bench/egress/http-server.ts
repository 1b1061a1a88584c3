import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Answers `/` at once, and `/N` with N mebibytes. Prints its URL. */
const block = Buffer.alloc(2 ** 16);
const server = createServer((req, res) => {
  const mebibytes = Number(req.url?.slice(1) ?? 0);
  if (mebibytes > 0) void send(res, mebibytes * 16);
  else res.end('ok');
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
process.once('SIGTERM', () => process.exit());

async function send(res: ServerResponse, blocks: number): Promise<void> {
  for (let sent = 0; sent < blocks; sent += 1) if (!res.write(block)) await once(res, 'drain');
  res.end();
}
