import { createInterface } from 'node:readline';

// The smallest stdio server that answers at all, so that the figures are about what stands in front of it.
const RESULT = '{"content":[{"type":"text","text":"hello"}]}';
const INITIALIZED =
  '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}';

createInterface({ input: process.stdin }).on('line', (line) => {
  const message: { id?: unknown; method?: string } = JSON.parse(line);
  if (message.id === undefined) return;
  const result = message.method === 'initialize' ? INITIALIZED : RESULT;
  process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${result}}\n`);
});
