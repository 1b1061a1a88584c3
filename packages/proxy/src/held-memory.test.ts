import { connect, type Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { newBudgets, type Budgets } from './start.ts';
import { messagesIn, postJson, type Answer } from './doubles/http-client.ts';
import { newSession, runningProxy } from './doubles/running-proxy.ts';
import { scriptedServer, type Received } from './doubles/scripted-server.ts';
import { BodyBudget, type HeldBody, type Yielding } from './steps/body-budget.ts';

const MEGABYTE = 1024 * 1024;
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** Sends all of a body but its last byte. */
const unfinished = (port: number, bytes: number): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${bytes + 1}\r\n\r\n`;
    socket.write(head);
    socket.write(Buffer.alloc(bytes, 0x20), () => resolve(socket));
  });

test('unfinished bodies of all clients and all proxies together stay within one bound, and others are served', async () => {
  const budgets: Budgets = { ...newBudgets(), bodies: new BodyBudget(8 * MEGABYTE) };
  await using one = await runningProxy(scriptedServer(), { budgets });
  await using two = await runningProxy(scriptedServer(), { budgets });
  const sockets: Socket[] = [];
  const refused: string[] = [];
  for (let n = 0; n < 12; n += 1) {
    const socket = await unfinished(n % 2 === 0 ? one.port : two.port, 2 * MEGABYTE);
    socket.setEncoding('utf8').on('data', (text: string) => void refused.push(text));
    sockets.push(socket);
  }
  await expect.poll(() => refused.length).toBeGreaterThanOrEqual(8);
  expect(refused.every((text) => text.startsWith('HTTP/1.1 503 '))).toBe(true);
  for (const { url } of [one, two]) expect((await postJson(url, ping)).status).toBe(200);
  const large = { ...ping, params: { x: 'x'.repeat(6 * MEGABYTE) } };
  expect((await postJson(one.url, large)).status).toBe(200);
  for (const socket of sockets) socket.destroy();
});

/** A server that forgets what it reads, and answers nothing until it is told to. */
const forgetful = () => {
  const stdout = new PassThrough();
  let lines = 0;
  const stdin = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (chunk.at(-1) === 0x0a) lines += 1;
      done();
    },
  });
  return {
    backend: { kind: 'stdio' as const, attach: () => Promise.resolve({ stdin, stdout, close() {} }) },
    lines: () => lines,
    answer: (id: number) => stdout.write(`{"jsonrpc":"2.0","id":${id},"result":{}}\n`),
  };
};

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const memory = (): number => {
  collect();
  const { external, heapUsed } = process.memoryUsage();
  return external + heapUsed;
};

test('a call that waits for its answer does not hold its body', async () => {
  const server = forgetful();
  await using proxy = await runningProxy(server);
  const text = `{"jsonrpc":"2.0","id":"an id that is long enough to be a view","method":"tools/call","params":{"x":"${'x'.repeat(4 * MEGABYTE)}"}}`;
  const calls = 20;
  const before = memory();
  const pending: Promise<Answer>[] = [];
  for (let n = 1; n <= calls; n += 1) {
    pending.push(postJson(proxy.url, text));
    await expect.poll(server.lines).toBe(n);
  }
  // The bodies alone are four times the calls; the texts made of them would be as much again.
  expect(memory() - before).toBeLessThan(calls * 3 * MEGABYTE);
  for (let n = 1; n <= calls; n += 1) server.answer(n);
  for (const answer of await Promise.all(pending)) expect(answer.status).toBe(200);
});

/** Counts the bodies that nothing holds any more. */
class CountingBudget extends BodyBudget {
  released = 0;

  override hold(body: Yielding): HeldBody {
    const held = super.hold(body);
    return {
      add: (bytes) => held.add(bytes),
      release: () => {
        this.released += 1;
        held.release();
      },
    };
  }
}

test('a client that waits for the handshake does not hold its body', async () => {
  const bodies = new CountingBudget();
  await using proxy = await runningProxy(forgetful(), { budgets: { ...newBudgets(), bodies } });
  const text = `{"jsonrpc":"2.0","id":"an id that is long enough to be a view","method":"initialize","params":{"x":"${'x'.repeat(4 * MEGABYTE)}"}}`;
  const clients = 12;
  const before = memory();
  const pending: Promise<Answer>[] = [];
  for (let n = 1; n <= clients; n += 1) {
    pending.push(postJson(proxy.url, text));
    await expect.poll(() => bodies.released).toBe(n);
  }
  await expect.poll(() => memory() - before).toBeLessThan(clients * 3 * MEGABYTE);
  proxy.backendEnded();
  for (const answer of await Promise.all(pending)) expect(answer.status).toBe(502);
});

test('a result of any size is one JSON body where no stream is open yet', async () => {
  const result = { text: 'x'.repeat(3 * MEGABYTE) };
  const server = scriptedServer((message, { reply }) => {
    if (message.method !== 'tools/call') return undefined;
    reply(message, result);
    return 'handled';
  });
  await using proxy = await runningProxy(server);
  const answer = await postJson(
    proxy.url,
    { jsonrpc: '2.0', id: 'r', method: 'tools/call' },
    await newSession(proxy.url),
  );
  expect(answer.headers['content-type']).toBe('application/json');
  expect(JSON.parse(answer.text)).toEqual({ jsonrpc: '2.0', id: 'r', result });
});

test('three hundred calls of one session that are unanswered together are all answered', async () => {
  const calls: Received[] = [];
  const server = scriptedServer((message, { reply }) => {
    if (message.method !== 'tools/call') return undefined;
    calls.push(message);
    if (calls.length === 300) for (const call of calls) reply(call, {});
    return 'handled';
  });
  await using proxy = await runningProxy(server, { clock: manualClock() });
  const session = await newSession(proxy.url);
  const ids = Array.from({ length: 300 }, (_, n) => n);
  const answers = await Promise.all(
    ids.map((id) => postJson(proxy.url, { jsonrpc: '2.0', id, method: 'tools/call' }, session)),
  );
  expect(answers.flatMap(messagesIn)).toMatchObject(ids.map((id) => ({ id, result: {} })));
});
