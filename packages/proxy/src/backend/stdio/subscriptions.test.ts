import { describe, expect, test } from 'vitest';
import { request, started } from '../../doubles/started-mux.ts';
import type { Received } from '../../doubles/scripted-server.ts';

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
