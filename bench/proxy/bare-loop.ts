import { spawn } from 'node:child_process';
import { createServer, type ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';

// The baseline: the least that can put HTTP in front of a stdio server, with no session, guard, limit or id safety
// beyond one counter. Prints its URL.
const [file = '', ...args] = process.argv.slice(2);
const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = new Map<number, { readonly res: ServerResponse; readonly id: unknown }>();
let last = 0;

createInterface({ input: child.stdout }).on('line', (line) => {
  const message: { id: unknown } = JSON.parse(line);
  const asked = waiting.get(Number(message.id));
  waiting.delete(Number(message.id));
  message.id = asked?.id;
  asked?.res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(message));
});

const server = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    const message: { id: unknown } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    last += 1;
    waiting.set(last, { res, id: message.id });
    message.id = last;
    child.stdin.write(`${JSON.stringify(message)}\n`);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`);
});
process.on('SIGTERM', () => {
  child.kill();
  process.exit(0);
});
