import { describe, expect, test } from 'vitest';
import { request, started } from '../../doubles/started-mux.ts';
import type { Received } from '../../doubles/scripted-server.ts';
import { oneOff } from '../port.ts';
import { Subscriptions } from './subscriptions.ts';

describe('subscriptions and log levels of many', () => {
  const count = (messages: readonly Received[], name: string): number =>
    messages.filter(({ method }) => method === name).length;

  test('the server hears of the first subscriber and of the last unsubscriber', async () => {
    const { server, join, ask } = await started();
    const clients = ['a', 'b', 'c'].map((key) => join(key));
    const all = (method: string) =>
      Promise.all(clients.map((client) => ask(client, request(1, method, { uri: 'x:' })).done));
    await all('resources/subscribe');
    expect(count(server.received, 'resources/subscribe')).toBe(1);
    await all('resources/unsubscribe');
    expect(count(server.received, 'resources/unsubscribe')).toBe(1);
  });

  test('a refused subscription is not remembered', async () => {
    const { server, join, ask } = await started((message, { say }) => {
      if (message.method !== 'resources/subscribe') return undefined;
      say(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32602, message: 'no' } }));
      return 'handled';
    });
    for (const key of ['a', 'b'])
      expect(await ask(join(key), request(1, 'resources/subscribe', { uri: 'x:' })).done).toContain('-32602');
    expect(count(server.received, 'resources/subscribe')).toBe(2);
  });

  test('the server is set to the most verbose level that anybody wants', async () => {
    const { server, mux, join, ask } = await started();
    const [a, b] = [join('a'), join('b')];
    await ask(a, request(1, 'logging/setLevel', { level: 'error' })).done;
    await ask(b, request(1, 'logging/setLevel', { level: 'debug' })).done;
    await ask(a, request(2, 'logging/setLevel', { level: 'warning' })).done;
    mux.leave(b);
    await server.heard(
      ({ method, params }) => method === 'logging/setLevel' && params?.['level'] === 'warning',
    );
    const levels = server.received
      .filter(({ method }) => method === 'logging/setLevel')
      .map(({ params }) => params?.['level']);
    expect(levels).toEqual(['error', 'debug', 'warning']);
  });
});

describe('subscriptions that wait for one another', () => {
  const subscribe = (id: number, extra: object = {}) =>
    request(id, 'resources/subscribe', { uri: 'x:', ...extra });

  test('all hear that the server has ended, however many they are, and no client has all places', async () => {
    const { mux, join, ask } = await started(({ method }) =>
      method === 'resources/subscribe' ? 'handled' : undefined,
    );
    const outcomes = ['a', 'b', 'c', 'd'].flatMap((key) => {
      const client = join(key);
      return Array.from({ length: 1_100 }, (_, id) => ask(client, subscribe(id)));
    });
    mux.ended();
    const codes = await Promise.all(outcomes.map(({ done }) => done));
    expect(codes.filter((code) => code === 'proxy/backend-lost')).toHaveLength(4 * 1024 + 1);
    expect(codes.filter((code) => code === 'proxy/busy')).toHaveLength(4 * 76 - 1);
  });

  test('go on one after another without deepening the stack', () => {
    const subscriptions = new Subscriptions();
    let finish = (): void => {};
    let trips = 0;
    for (let n = 0; n < 4_000; n += 1) {
      subscriptions.subscribe('x:', {
        peer: oneOff(),
        trip(done) {
          trips += 1;
          if (n === 0) finish = () => done(false);
          else done(false);
        },
        alone() {},
        fail() {},
      });
    }
    finish();
    expect(trips).toBe(4_000);
  });

  test('keep no more than they need', async () => {
    const { server, join, ask } = await started((message, { reply }) => {
      if (message.method !== 'resources/subscribe') return undefined;
      if (message.params?.['large'] === undefined) reply(message, {});
      return 'handled';
    });
    const client = join('a');
    const first = ask(client, subscribe(1, { large: 'x'.repeat(10_000) }));
    expect(await first.done).toContain('"result"');
    expect(server.received.at(-1)?.params).toEqual({ uri: 'x:' });
  });
});
