import { createServer, request, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

// The baseline: the least that can put HTTP in front of a server in a container. It makes the container, attaches to it
// over the engine's socket and relays lines, with nothing but a counter for ids. Prints its URL; SIGTERM removes all.
const [socketPath = '', image = '', label = ''] = process.argv.slice(2);
const HEADER_BYTES = 8;
const waiting = new Map<number, { readonly res: ServerResponse; readonly id: unknown }>();
let last = 0;

const id = await createContainer();
const attached = await attach();
await call('POST', `/containers/${id}/start`);
relay(attached);

const server = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    const message: { id: unknown } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    last += 1;
    waiting.set(last, { res, id: message.id });
    message.id = last;
    attached.write(`${JSON.stringify(message)}\n`);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`);
});
process.on('SIGTERM', () => {
  void call('DELETE', `/containers/${id}?force=1`).then(() => process.exit(0));
});

/** Takes the frames of the engine's stream apart and answers whoever waits for the line. */
function relay(socket: Duplex): void {
  let rest: Buffer = Buffer.alloc(0);
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER_BYTES && rest.length >= HEADER_BYTES + rest.readUInt32BE(4)) {
      const end = HEADER_BYTES + rest.readUInt32BE(4);
      if (rest[0] === 1) text += rest.toString('utf8', HEADER_BYTES, end);
      rest = rest.subarray(end);
    }
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      const message: { id: unknown } = JSON.parse(line);
      const asked = waiting.get(Number(message.id));
      waiting.delete(Number(message.id));
      message.id = asked?.id;
      asked?.res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(message));
    }
  });
}

async function createContainer(): Promise<string> {
  const body = {
    Image: image,
    OpenStdin: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Labels: { [label]: '1' },
    HostConfig: { NetworkMode: 'none' },
  };
  return (JSON.parse(await call('POST', '/containers/create', body)) as { readonly Id: string }).Id;
}

function attach(): Promise<Duplex> {
  const path = `/containers/${id}/attach?stream=1&stdin=1&stdout=1&stderr=1`;
  return new Promise((resolve, reject) => {
    const headers = { host: 'docker', connection: 'Upgrade', upgrade: 'tcp' };
    const asked = request({ socketPath, path, method: 'POST', headers, agent: false });
    asked.once('upgrade', (_response, socket) => resolve(socket));
    asked.once('error', reject);
    asked.end();
  });
}

function call(method: string, path: string, body?: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'docker', 'content-type': 'application/json' };
    const asked = request({ socketPath, path, method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.once('end', () => {
        if ((response.statusCode ?? 500) < 300) resolve(text);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
      });
    });
    asked.once('error', reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
