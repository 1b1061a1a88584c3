import { request, type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KeptConnections } from './kept-connections.ts';

let agent: KeptConnections;
let servers: Server[];
let connections: Socket[];

beforeEach(() => {
  agent = new KeptConnections({ maxFreeSockets: 2, timeout: 60_000 });
  servers = [];
  connections = [];
});
afterEach(async () => {
  agent.destroy();
  for (const one of connections) one.destroy();
  await Promise.all(servers.map((server) => new Promise((resolve) => void server.close(resolve))));
});

/** Answers each request with the number of its connection, at once, unless it is to do otherwise. */
async function listen(head = '', answer?: (socket: Socket, at: number) => void): Promise<number> {
  const server = createServer((socket) => {
    const at = connections.push(socket);
    socket.on('error', () => {});
    socket.on('data', () => {
      if (answer) answer(socket, at);
      else socket.write(`HTTP/1.1 200 OK\r\n${head}Content-Length: 1\r\n\r\n${at}`);
    });
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const begin = (port: number) => request({ agent, host: '127.0.0.1', port, path: '/' });

/** What it is answered with, once its connection is free. */
async function ask(port: number): Promise<string> {
  const asked = begin(port);
  const free = new Promise((resolve) => void asked.once('close', resolve));
  const [reply] = (await once(asked.end(), 'response')) as [IncomingMessage];
  const said = await text(reply);
  await free;
  return said;
}

test('a connection is used again, the last one first', async () => {
  const port = await listen();
  expect(await Promise.all([ask(port), ask(port)])).toEqual(['1', '2']);
  const last = await ask(port);
  expect([await ask(port), await ask(port), connections.length]).toEqual([last, last, 2]);
});

test('no more of them idle than are wanted', async () => {
  const port = await listen();
  await Promise.all([ask(port), ask(port), ask(port), ask(port)]);
  await vi.waitFor(() => expect(connections.filter(({ closed }) => !closed)).toHaveLength(2));
});

test('none leads to another server than was asked for', async () => {
  const [one, other] = [await listen(), await listen()];
  expect([await ask(one), await ask(other), await ask(one), await ask(other)]).toEqual(['1', '2', '1', '2']);
});

test('one that says what nobody has asked for is ended, and its words go to nobody', async () => {
  const port = await listen();
  await ask(port);
  const [first] = connections;
  const over = once(first as Socket, 'close');
  first?.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison');
  await over;
  expect(await ask(port)).toBe('2');
});

test.each([1, 2])('nor is one that says so before its answer was read, at its use no. %d', async (use) => {
  const port = await listen();
  for (let before = 1; before < use; before += 1) await ask(port);
  const [reply] = (await once(begin(port).end(), 'response')) as [IncomingMessage];
  // The answer has come whole, and nobody has read it yet.
  await vi.waitFor(() => expect(reply.complete).toBe(true));
  const [first] = connections;
  const over = once(first as Socket, 'close');
  first?.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npo');
  await over;
  expect(await text(reply).catch(() => '')).toBe('1');
  expect(await ask(port)).toBe('2');
});

test('one that answers twice at once is not used again', async () => {
  const twice = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na';
  const port = await listen('', (socket, at) => socket.write(at === 1 ? twice + twice : twice));
  await ask(port).catch(() => {});
  expect(await ask(port)).toBe('a');
  expect(connections).toHaveLength(2);
});

test.each([
  ['ends it', 'Connection: close\r\n'],
  ['keeps it for a second only', 'Keep-Alive: timeout=1\r\n'],
])('one whose server %s is not used again', async (_, head) => {
  const port = await listen(head);
  expect([await ask(port), await ask(port)]).toEqual(['1', '2']);
});

test('one that its server has ended or broken is not used again', async () => {
  const port = await listen();
  await ask(port);
  connections[0]?.end();
  await once(connections[0] as Socket, 'close');
  expect(await ask(port)).toBe('2');
  connections[1]?.resetAndDestroy();
  await vi.waitFor(async () => expect(await ask(port)).toBe('3'));
});

test('one that idles too long is ended', async () => {
  agent = new KeptConnections({ maxFreeSockets: 2, timeout: 20 });
  const port = await listen();
  await ask(port);
  await once(connections[0] as Socket, 'close');
  expect(await ask(port)).toBe('2');
});

test('one that takes its time to answer is not', async () => {
  agent = new KeptConnections({ maxFreeSockets: 2, timeout: 20 });
  const port = await listen('', (socket) => {
    // Twice as long.
    setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na'), 40);
  });
  expect([await ask(port), await ask(port)]).toEqual(['a', 'a']);
});

test('one whose request was left unanswered is not used again', async () => {
  const port = await listen('', (socket, at) => {
    if (at > 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na');
  });
  const left = begin(port);
  left.on('error', () => {});
  left.end();
  await vi.waitFor(() => expect(connections).toHaveLength(1));
  left.destroy();
  expect(await ask(port)).toBe('a');
  const early = begin(port);
  early.on('error', () => {});
  early.end().destroy();
  expect(await ask(port)).toBe('a');
});

test('those that idle are ended together', async () => {
  const port = await listen();
  await Promise.all([ask(port), ask(port)]);
  agent.endIdle();
  await Promise.all(connections.map(async (one) => one.closed || once(one, 'close')));
  expect(await ask(port)).toBe('3');
});
