import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { apiUnderTest } from '../api.fixture.ts';
import { ROUTES } from '../routes.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

const server = await apiUnderTest({
  snapshot: snapshotOf({ files: [storedServer('io.acme/weather')] }),
  routes: ROUTES,
  listener: { requestMs: 1000 },
});
const { port } = new URL(await server.open.listen());
afterAll(() => server.close());

/** Sends the texts on one connection, each after an answer to the one before; the statuses of all answers. */
function statuses(...texts: readonly string[]): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  const socket = connect(Number(port), '127.0.0.1');
  let received = '';
  let sent = 0;
  const send = (): void => void socket.write(texts[sent++] ?? '');
  const found = (): string[] =>
    [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status ?? '');
  socket.on('connect', send).on('error', reject);
  socket.on('data', (data) => {
    received += data.toString('latin1');
    if (found().length === sent && sent < texts.length) send();
  });
  socket.on('close', () => resolve(found()));
  return promise;
}

const GOOD = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
const LONG = `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'a'.repeat(17_000)}\r\n\r\n`;

describe('on a connection that was used before', () => {
  test.each([
    ['431', 'an oversized header', LONG],
    ['400', 'what is no HTTP', 'what?\r\n\r\n'],
    ['408', 'a request that does not end', 'GET / HTTP/1.1\r\nHost: x\r\n'],
    ['400', 'a target that is not escaped', 'GET /?search=\u00e6 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('%s is the answer to %s, as on a fresh one', async (status, _what, broken) => {
    expect(await statuses(broken)).toEqual([status]);
    expect(await statuses(GOOD, broken)).toEqual(['200', status]);
    expect(await statuses(GOOD, GOOD, broken)).toEqual(['200', '200', status]);
  });

  test('nothing is said in place of an answer that is still due', async () => {
    const [first] = await statuses(`${GOOD}what?\r\n\r\n`);
    expect(first === undefined || first === '200').toBe(true);
  });
});

describe('a transfer coding', () => {
  test.each(['gzip', 'identity', 'gzip, chunked', 'chunked, chunked', 'x'])(
    '%s is 400, and what follows is never run',
    async (coding) => {
      const found = await statuses(
        `GET /openapi.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n${GOOD}`,
      );
      expect(found[0]).toBe('400');
      expect(found.includes('200')).toBe(false);
    },
  );
});

describe('a body that is too large', () => {
  test('is answered, also to a client that sends all of it before it listens', async () => {
    const socket = connect(Number(port), '127.0.0.1');
    const { promise: failed, reject } = Promise.withResolvers<never>();
    socket.on('error', reject).pause();
    const size = 20 * 1024 * 1024;
    const head = ['POST /v1/entries HTTP/1.1', 'Host: x', 'Content-Type: application/json'];
    socket.write([...head, `Content-Length: ${size}`, '', ''].join('\r\n'));
    const sent = new Promise<void>((resolve) => {
      socket.write(Buffer.alloc(size, ' '), () => resolve());
    });
    await Promise.race([sent, failed]);
    const [answer]: Buffer[] = await Promise.race([once(socket.resume(), 'data'), failed]);
    expect(answer?.toString()).toMatch(/^HTTP\/1\.1 413 .*\{"error":"request body too large"\}$/s);
    socket.destroy();
  });
});
