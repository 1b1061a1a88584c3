import { once } from 'node:events';
import net from 'node:net';

/**
 * Publishers in a process of their own, as the program that they are measured against has one, and with as little of a
 * client around them: it is the registry that is measured. Arguments: base URL, publishers, seconds, a text of which to
 * make names that nobody has published. Prints how many were published per second.
 */
const [base = '', publishers = '', seconds = '', run = ''] = process.argv.slice(2);
const url = new URL(`${base}/publish`);
const started = performance.now();
const end = started + 1000 * Number(seconds);
let made = 0;
let published = 0;
await Promise.all(Array.from({ length: Number(publishers) }, publishAll));
process.stdout.write(String(published / ((performance.now() - started) / 1000)));

/** One after the other on one connection. */
async function publishAll(): Promise<void> {
  const socket = net.connect(Number(url.port), url.hostname).setEncoding('utf8').setNoDelay();
  await once(socket, 'connect');
  let next = nextRequest();
  while (performance.now() < end) {
    socket.write(next);
    // While the registry works, so that it need not wait for it afterwards.
    next = nextRequest();
    await answered(socket);
    published += 1;
  }
  socket.destroy();
}

function nextRequest(): string {
  made += 1;
  const name = `io.bench/${run}-${made}`;
  const body = JSON.stringify({ name, version: '1.0.0', url: 'https://bench.test/mcp' });
  return [
    `POST ${url.pathname} HTTP/1.1`,
    `host: ${url.host}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
}

/** Resolves when all of an answer is there; fails unless it is 201. */
async function answered(socket: net.Socket): Promise<void> {
  let text = '';
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const take = (chunk: string): void => {
    text += chunk;
    const head = text.indexOf('\r\n\r\n');
    if (head === -1) return;
    const length = Number(/^content-length: (\d+)/im.exec(text.slice(0, head))?.[1]);
    if (!text.startsWith('HTTP/1.1 201 ')) reject(new Error(text));
    else if (text.length === head + 4 + length) resolve();
  };
  const leave = (): void => reject(new Error('the registry has closed the connection'));
  socket.on('data', take).on('close', leave);
  try {
    await promise;
  } finally {
    socket.off('data', take).off('close', leave);
  }
}
