import { Agent, createServer, request } from 'node:http';

// The baseline: the least that can hand HTTP to another server. Prints its URL.
const [there = ''] = process.argv.slice(2);
const { host, hostname, port } = new URL(there);
const agent = new Agent({ keepAlive: true, scheduling: 'lifo' });

const server = createServer((req, res) => {
  const headers = { ...req.headers, host };
  const upstream = request({ hostname, port, method: req.method, path: req.url, headers, agent }, (reply) => {
    res.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(res);
  });
  upstream.on('error', () => res.destroy());
  req.pipe(upstream);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`);
});
process.on('SIGTERM', () => process.exit(0));
