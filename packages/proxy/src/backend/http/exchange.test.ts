import { once } from 'node:events';
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { exchange } from './exchange.ts';

const MESSAGE = '{"jsonrpc":"2.0","id":1,"result":{}}';

/** What is read of an answer of this type that comes in these pieces. */
async function read(type: string, pieces: readonly string[]): Promise<readonly string[]> {
  const server = createServer((_req, res) => {
    res.writeHead(200, { 'Content-Type': type }).flushHeaders();
    for (const piece of pieces) res.write(piece);
    res.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const url = new URL(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
  const reply = await exchange(url, { method: 'POST', signal: AbortSignal.timeout(60_000) });
  const messages: string[] = [];
  for await (const { data } of reply.messages()) messages.push(data);
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  return messages;
}

test.each<[string, string, readonly string[], readonly string[]]>([
  ['JSON', 'application/json', [MESSAGE], [MESSAGE]],
  ['JSON behind white space, in two pieces', 'application/json', [` \n${MESSAGE.slice(0, 9)}`, MESSAGE.slice(9)], [` \n${MESSAGE}`]],
  ['JSON behind a byte order mark', 'Application/JSON; charset=utf-8', [`\uFEFF${MESSAGE}`], [MESSAGE]],
  ['JSON that is said to be events', 'text/event-stream', [MESSAGE], [MESSAGE]],
  ['events', 'Text/Event-Stream; charset=utf-8', ['d', `ata: ${MESSAGE}\n\ndata: x\n\n`], [MESSAGE, 'x']],
  ['events behind a byte order mark', 'text/event-stream', [`\uFEFFdata: ${MESSAGE}\n\n`], [MESSAGE]],
  ['events that are said to be JSON', 'application/json', [`event: message\ndata: ${MESSAGE}\n\n`], [MESSAGE]],
  ['events of no type', '', [`: hello\n\ndata: ${MESSAGE}\n\n`], [MESSAGE]],
  ['nothing', 'application/json', [], []],
  ['JSON behind more white space than anybody writes', 'application/json', [' '.repeat(3_000), MESSAGE], [' '.repeat(3_000) + MESSAGE]],
  ['events behind white space, in pieces', 'text/event-stream', ['\n', '\r\n', `data: ${MESSAGE}\n\n`], [MESSAGE]],
])('an answer is read as what it is: %s', async (_name, type, pieces, messages) => {
  expect(await read(type, pieces)).toEqual(messages);
}); // prettier-ignore

test('a large answer of many pieces is read in one go', async () => {
  const pieces = Array.from({ length: 500 }, () => 'x'.repeat(64 * 1024));
  const began = performance.now();
  const [message] = await read('application/json', ['"', ...pieces, '"']);
  expect(message).toHaveLength(500 * 64 * 1024 + 2);
  // Were all of it looked at with each piece, it would be minutes.
  expect(performance.now() - began).toBeLessThan(20_000);
}, 60_000);
