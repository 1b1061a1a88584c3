import { createServer } from 'node:http';

// The smallest server of MCP over HTTP that answers at all. Prints its URL.
const RESULT = '{"content":[{"type":"text","text":"hello"}]}';
const INITIALIZED =
  '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}';

const server = createServer((req, res) => {
  let text = '';
  req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  req.on('end', () => {
    // Whoever was broken off in its body waits for nothing.
    if (text === '') {
      res.writeHead(400).end();
      return;
    }
    const message: { id?: unknown; method?: string } = JSON.parse(text);
    const result = message.method === 'initialize' ? INITIALIZED : RESULT;
    const body = `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${result}}`;
    const head = { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'bench' };
    res.writeHead(200, { ...head, 'Content-Length': Buffer.byteLength(body) }).end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`);
});
process.on('SIGTERM', () => process.exit(0));
