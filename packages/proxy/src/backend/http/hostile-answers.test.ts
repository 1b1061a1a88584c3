import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { ask } from '../../doubles/http-client.ts';
import { runningProxy } from '../../doubles/running-proxy.ts';
import type { HttpBackend } from '../backend.ts';

/** A server that answers every request with these bytes and hangs up. */
const answering = async (bytes: string): Promise<AsyncDisposable & { readonly backend: HttpBackend }> => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Buffer.from(bytes, 'latin1')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    backend: { kind: 'http', target: new URL(`http://127.0.0.1:${port}`) },
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
};

const CALL = {
  body: '{"jsonrpc":"2.0","id":7,"method":"x"}',
  headers: { 'Content-Type': 'application/json' },
};
const BODY = '\r\nContent-Length: 2\r\n\r\n{}';

test.each([
  ['a status of zero', `HTTP/1.1 000 OK${BODY}`, 502],
  ['a status below those there are', `HTTP/1.1 099 OK${BODY}`, 502],
  ['a status above those there are', `HTTP/1.1 1000 OK${BODY}`, 502],
  [
    'a switch of protocols nobody asked for',
    'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
    502,
  ],
  ['a switch of protocols to nothing', 'HTTP/1.1 101 X\r\n\r\n', 502],
  ['no HTTP at all', 'hello\r\n\r\n', 502],
  ['nothing', '', 502],
  ['half a head', 'HTTP/1.1 200 OK\r\nX: ', 502],
  ['a header with a control character', `HTTP/1.1 200 OK\r\nX-A: a\x01b${BODY}`, 502],
  ['a reason phrase with a control character', `HTTP/1.1 200 O\x01K${BODY}`, [200, 502]],
  ['a status nobody knows', `HTTP/1.1 999 Own${BODY}`, 999],
  ['a length that is no number', 'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}', 502],
])('a server that answers %s ends one call and nothing else', async (_name, bytes, expected) => {
  await using target = await answering(bytes);
  await using proxy = await runningProxy(target);
  for (let calls = 0; calls < 2; calls += 1) {
    const answer = await ask(proxy.url, CALL);
    expect([expected].flat()).toContain(answer.status);
    if (answer.status === 502)
      expect(JSON.parse(answer.text)).toMatchObject({ id: 7, error: { code: -32603 } });
  }
  expect((await ask(`${proxy.origin}/health`, { method: 'GET' })).status).toBe(200);
});

test("what an answer varies by is the server's and the proxy's own", async () => {
  await using target = await answering(`HTTP/1.1 200 OK\r\nVary: Accept, Cookie${BODY}`);
  await using proxy = await runningProxy(target);
  const Origin = `http://localhost:${proxy.port}`;
  const answer = await ask(proxy.url, { ...CALL, headers: { ...CALL.headers, Origin } });
  expect(answer.headers.vary).toBe('Origin, Accept, Cookie');
  expect((await ask(proxy.url, CALL)).headers.vary).toBe('Accept, Cookie');
});
