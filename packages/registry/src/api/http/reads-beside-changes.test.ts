import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { connect, Socket, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { readsBesideChanges } from './reads-beside-changes.ts';

const line = (method: string, url: string, connection: string): string =>
  `${method} ${url} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: ${connection}\r\n\r\n`;

function opened() {
  const handled: string[] = [];
  const clock = manualClock(0);
  const store: { since?: number | undefined } = {};
  const committingSince = () => store.since;
  const handle = readsBesideChanges(({ method, url }) => handled.push(`${method} ${url}`), {
    clock,
    committingSince,
  });
  const arrive = (method: string, url: string, socket = new Socket()): ServerResponse => {
    const request = Object.assign(new IncomingMessage(socket), { method, url });
    const response = new ServerResponse(request);
    handle(request, response);
    return response;
  };
  return { handled, clock, store, arrive };
}

describe('reads beside changes', () => {
  test('are answered as they come where nobody changes anything', () => {
    const { handled, arrive } = opened();
    for (const url of ['/a', '/b']) arrive('GET', url);
    expect(handled).toEqual(['GET /a', 'GET /b']);
  });

  test('are answered one in each turn of the loop while a change is under way, in their order', async () => {
    const { handled, arrive } = opened();
    arrive('POST', '/publish');
    for (const url of ['/a', '/b', '/c']) arrive('GET', url);
    expect(handled).toEqual(['POST /publish']);
    await setImmediate();
    expect(handled).toEqual(['POST /publish', 'GET /a']);
    arrive('POST', '/another');
    expect(handled.at(-1)).toBe('POST /another');
    await setImmediate();
    await setImmediate();
    expect(handled.slice(3)).toEqual(['GET /b', 'GET /c']);
  });

  test('are answered before a change that was sent behind them on the same connection', async () => {
    const { handled, arrive } = opened();
    const socket = new Socket();
    arrive('POST', '/publish');
    arrive('GET', '/before', socket);
    arrive('GET', '/other');
    arrive('DELETE', '/entry', socket);
    expect(handled).toEqual(['POST /publish', 'GET /before', 'DELETE /entry']);
    await setImmediate();
    expect(handled.at(-1)).toBe('GET /other');
  });

  test('and a change behind them on one connection are answered in their order while another change is under way', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const handle = readsBesideChanges(
      ({ url }, response) => (url === '/held' ? held.resolve(response) : response.end(url)),
      { clock: manualClock() },
    );
    const server = createServer(handle).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const open = () =>
      connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', noDelay: true });
    const [other, client] = [open(), open()];
    other.write(line('POST', '/held', 'keep-alive'));
    const response = await held.promise;
    client.write(
      line('GET', '/a', 'keep-alive') + line('POST', '/b', 'keep-alive') + line('GET', '/c', 'close'),
    );
    expect((await text(client)).match(/\/[abc]$|\/[abc](?=HTTP)/gm)).toEqual(['/a', '/b', '/c']);
    response.end();
    other.destroy();
  });

  test('do not wait behind thousands that one connection has sent at once', async () => {
    const { handled, arrive } = opened();
    arrive('POST', '/publish');
    for (let index = 0; index < 2_000; index += 1) arrive('GET', '/flood');
    arrive('GET', '/other');
    for (let turns = 0; turns < 100 && !handled.includes('GET /other'); turns += 1) await setImmediate();
    expect(handled).toContain('GET /other');
    for (let turns = 0; turns < 100; turns += 1) await setImmediate();
    expect(handled).toHaveLength(2_002);
  });

  test('are answered in the order in which they came where more than wait for their turn come without a pause', async () => {
    const { handled, arrive } = opened();
    arrive('POST', '/publish').emit('close');
    arrive('GET', '/first');
    for (let index = 0; index < 63; index += 1) arrive('GET', '/others');
    expect(handled).toEqual(['POST /publish']);
    arrive('GET', '/one-more');
    expect(handled).toEqual(['POST /publish', 'GET /first']);
    arrive('GET', '/last');
    for (let turns = 0; turns < 20; turns += 1) {
      for (let index = 0; index < 10; index += 1) arrive('GET', '/flood');
      await setImmediate();
    }
    expect(handled).toContain('GET /last');
    expect(handled.indexOf('GET /last')).toBeLessThan(handled.indexOf('GET /flood'));
  });

  test('have their turns, one each, also where the one of a handler that fails came before, and where a change ends', async () => {
    const handled: (string | undefined)[] = [];
    const handle = readsBesideChanges(
      ({ url }) => {
        handled.push(url);
        if (url === '/broken') throw new Error('broken');
      },
      { clock: manualClock() },
    );
    const failed = new Promise((resolve) => process.setUncaughtExceptionCaptureCallback(resolve));
    onTestFinished(() => process.setUncaughtExceptionCaptureCallback(null));
    const arrive = (method: string, url: string): ServerResponse => {
      const request = Object.assign(new IncomingMessage(new Socket()), { method, url });
      const response = new ServerResponse(request);
      handle(request, response);
      return response;
    };
    const change = arrive('POST', '/publish');
    for (const url of ['/broken', '/a', '/b']) arrive('GET', url);
    change.emit('close');
    await setImmediate();
    await failed;
    expect(handled).toEqual(['/publish', '/broken']);
    await setImmediate();
    expect(handled.at(-1)).toBe('/a');
    await setImmediate();
    expect(handled.at(-1)).toBe('/b');
  });

  test('are answered as they come again a moment after the last change', () => {
    const { handled, clock, arrive } = opened();
    arrive('POST', '/publish').emit('close');
    clock.pass(4);
    arrive('GET', '/soon');
    expect(handled).not.toContain('GET /soon');
    const other = opened();
    other.arrive('DELETE', '/entry').emit('close');
    other.clock.pass(6);
    other.arrive('HEAD', '/later');
    other.arrive('GET', '/later');
    expect(other.handled.slice(1)).toEqual(['HEAD /later', 'GET /later']);
  });
});

describe('reads while the database works on a commit', () => {
  function committing() {
    const all = opened();
    const change = all.arrive('POST', '/publish');
    all.store.since = all.clock.elapsed();
    return { ...all, change };
  }

  test('wait until the change is answered', async () => {
    const { handled, store, change, arrive } = committing();
    for (const url of ['/a', '/b']) arrive('GET', url);
    for (let turns = 0; turns < 10; turns += 1) await setImmediate();
    expect(handled).toEqual(['POST /publish']);
    store.since = undefined;
    change.emit('close');
    await setImmediate();
    expect(handled).toEqual(['POST /publish', 'GET /a']);
    await setImmediate();
    expect(handled.at(-1)).toBe('GET /b');
  });

  test('wait for a millisecond, however many come', async () => {
    const { handled, clock, arrive } = committing();
    for (const url of ['/a', '/b']) arrive('GET', url);
    clock.pass(0.9);
    arrive('GET', '/c');
    await setImmediate();
    expect(handled).toEqual(['POST /publish']);
    clock.pass(0.1);
    expect(handled.slice(1)).toEqual(['GET /a']);
    for (let turns = 0; turns < 2; turns += 1) await setImmediate();
    expect(handled.slice(2)).toEqual(['GET /b', 'GET /c']);
    expect(clock.waiting).toBe(0);
  });

  test('wait also where their turn was due when it began', async () => {
    const { handled, clock, store, arrive } = opened();
    arrive('POST', '/publish');
    for (const url of ['/a', '/b']) arrive('GET', url);
    store.since = clock.elapsed();
    await setImmediate();
    expect(handled).toEqual(['POST /publish']);
    clock.pass(1);
    expect(handled.at(-1)).toBe('GET /a');
  });

  test('wait no longer where another change comes or goes', () => {
    const { handled, clock, store, change, arrive } = committing();
    arrive('GET', '/a');
    clock.pass(0.5);
    arrive('POST', '/second');
    clock.pass(0.4);
    store.since = clock.elapsed();
    change.emit('close');
    clock.pass(0.1);
    expect(handled).toEqual(['POST /publish', 'POST /second', 'GET /a']);
  });

  test('are answered in their order where more wait than may, and the others after a millisecond', async () => {
    const { handled, clock, arrive } = committing();
    for (let index = 0; index < 70; index += 1) arrive('GET', `/${index}`);
    const urls = Array.from({ length: 70 }, (_, index) => `GET /${index}`);
    expect(handled.slice(1)).toEqual(urls.slice(0, 6));
    clock.pass(1);
    for (let turns = 0; turns < 70; turns += 1) await setImmediate();
    expect(handled.slice(1)).toEqual(urls);
    expect(clock.waiting).toBe(0);
  });

  test('do not wait where the commit has taken a millisecond', async () => {
    const { handled, clock, arrive } = committing();
    clock.pass(1);
    arrive('GET', '/a');
    await setImmediate();
    expect(handled.at(-1)).toBe('GET /a');
  });

  test('wait for the next commit until they have waited a millisecond', () => {
    const { handled, clock, store, change, arrive } = committing();
    clock.pass(0.5);
    arrive('GET', '/a');
    arrive('POST', '/second');
    clock.pass(0.3);
    change.emit('close');
    store.since = clock.elapsed();
    arrive('GET', '/b');
    clock.pass(0.6);
    expect(handled).toEqual(['POST /publish', 'POST /second']);
    clock.pass(0.1);
    expect(handled.slice(2)).toEqual(['GET /a']);
  });

  test('wait for nothing that is over, although who waited before them left the queue', async () => {
    const { handled, store, arrive } = committing();
    const socket = new Socket();
    arrive('GET', '/a', socket);
    arrive('GET', '/b');
    store.since = undefined;
    arrive('POST', '/next', socket);
    expect(handled.slice(1)).toEqual(['GET /a', 'POST /next']);
    await setImmediate();
    expect(handled.at(-1)).toBe('GET /b');
  });

  test('do not wait for one that nobody here has asked for', async () => {
    const { handled, clock, store, change, arrive } = committing();
    change.emit('close');
    store.since = clock.elapsed();
    arrive('GET', '/a');
    await setImmediate();
    expect(handled).toEqual(['POST /publish', 'GET /a']);
  });
});
