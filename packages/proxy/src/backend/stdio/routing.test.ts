import { describe, expect, test } from 'vitest';
import {
  call,
  Client,
  isCall,
  notice,
  request,
  result,
  silent,
  started,
  TIMEOUT_MS,
} from '../../doubles/started-mux.ts';
import type { Message } from '../../message/json-rpc.ts';

describe('what the server asks', () => {
  const sample = '{"jsonrpc":"2.0","id":"srv-1","method":"sampling/createMessage","params":{}}';

  test("goes to the only client with a call in flight, and its answer comes back under the server's id", async () => {
    const { server, mux, join, ask } = await started(silent);
    const [a, b] = [join('a'), join('b')];
    const outcome = ask(a, call(1));
    await server.heard(isCall);
    server.say(sample);
    await expect.poll(() => outcome.before).toMatchObject([{ method: 'sampling/createMessage', id: 1 }]);
    mux.answer(b, result(1, { stolen: true }));
    mux.answer(a, result('1', { wrongType: true }));
    mux.answer(a, result(1, { mine: true }));
    mux.answer(a, result(1, { again: true }));
    expect(await server.heard(({ id }) => id === 'srv-1')).toMatchObject({ result: { mine: true } });
    expect(server.received.filter(({ id }) => id === 'srv-1')).toHaveLength(1);
    expect([a.heard, b.heard]).toEqual([[], []]);
  });

  test('stops the clock of the call it came from', async () => {
    const { server, clock, mux, join, ask, settled } = await started(silent);
    const a = join('a');
    const outcome = ask(a, call(1));
    const message = await server.heard(isCall);
    server.say(sample);
    await expect.poll(() => outcome.before.length).toBe(1);
    clock.pass(TIMEOUT_MS * 3);
    mux.answer(a, result(1));
    await server.heard(({ id }) => id === 'srv-1');
    clock.pass(TIMEOUT_MS - 1);
    await settled(a);
    server.reply(message, { ok: true });
    expect(await outcome.done).toContain('"ok":true');
  });

  test('is refused when two clients have calls in flight', async () => {
    const { server, join, ask } = await started(silent);
    for (const key of ['a', 'b']) ask(join(key), call(1));
    await server.heard(({ id }) => id === 2);
    server.say(sample);
    expect(await server.heard(({ id }) => id === 'srv-1')).toMatchObject({ error: { code: -32601 } });
  });

  test('goes to the only listener when nothing is in flight', async () => {
    const { server, join } = await started(silent);
    join('deaf', false);
    const listener = join('a');
    server.say(sample);
    await expect.poll(() => listener.heard).toMatchObject([{ method: 'sampling/createMessage' }]);
  });

  test('waits a moment for the only client to open its stream', async () => {
    const { server, clock, mux, join, settled } = await started(silent);
    const late = join('a', false);
    server.say(sample);
    await settled(late);
    late.listener = new Client('ear').listener;
    const heard: Message[] = [];
    late.listener = { live: true, send: (message) => void heard.push(message) };
    mux.listens();
    expect(heard).toMatchObject([{ method: 'sampling/createMessage' }]);
    clock.pass(10_000);
    await settled(late);
    expect(server.received.filter(({ id }) => id === 'srv-1')).toEqual([]);
  });

  test('is refused when that stream does not come', async () => {
    const { server, clock, join, settled } = await started(silent);
    const deaf = join('a', false);
    server.say(sample);
    await settled(deaf);
    clock.pass(5_000);
    expect(await server.heard(({ id }) => id === 'srv-1')).toMatchObject({ error: { code: -32601 } });
  });

  test('is answered with an error when its client leaves, or never answers', async () => {
    const { server, clock, mux, join } = await started(silent);
    const a = join('a');
    server.say(sample);
    await expect.poll(() => a.heard.length).toBe(1);
    mux.leave(a);
    expect(await server.heard(({ id }) => id === 'srv-1')).toMatchObject({ error: { code: -32603 } });
    const b = join('b');
    server.say(sample.replace('srv-1', 'srv-2'));
    await expect.poll(() => b.heard.length).toBe(1);
    clock.pass(10 * 60_000);
    expect(await server.heard(({ id }) => id === 'srv-2')).toMatchObject({ error: { code: -32603 } });
  });

  test("is withdrawn by the server under the client's id", async () => {
    const { server, join } = await started(silent);
    const a = join('a');
    server.say(sample);
    server.say('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"srv-1"}}');
    await expect
      .poll(() => a.heard)
      .toMatchObject([{ id: 1 }, { method: 'notifications/cancelled', params: { requestId: 1 } }]);
  });

  test.each([
    ['{"jsonrpc":"2.0","id":"p","method":"ping"}', { id: 'p', result: {} }],
    ['{"jsonrpc":"2.0","id":"p","method":"anything/else"}', { id: 'p', error: { code: -32601 } }],
  ])('%s is answered by the proxy', async (line, expected) => {
    const { server } = await started();
    server.say(line);
    expect(await server.heard(({ id }) => id === 'p')).toMatchObject(expected);
  });
});

describe('what the server tells', () => {
  const say = (server: { say: (line: string) => void }, method: string, params: object = {}): void =>
    server.say(JSON.stringify(notice(method, params).value));

  test('list changes reach every client once, and none waits for a call', async () => {
    const { server, join, settled } = await started();
    const clients = [join('a'), join('b')];
    for (const kind of ['tools', 'prompts', 'resources']) say(server, `notifications/${kind}/list_changed`);
    await settled(clients[0]!);
    for (const { heard } of clients)
      expect(heard.map(({ method }) => method?.split('/')[1])).toEqual(['tools', 'prompts', 'resources']);
  });

  test('a changed resource reaches its subscribers only', async () => {
    const { server, join, ask, settled } = await started();
    const [a, b, c] = [join('a'), join('b'), join('c')];
    await ask(a, request(1, 'resources/subscribe', { uri: 'f:/x' })).done;
    await ask(b, request(1, 'resources/subscribe', { uri: 'f:/y' })).done;
    for (const uri of ['f:/x', 'f:/x/sub', 'f:/xx']) say(server, 'notifications/resources/updated', { uri });
    await settled(a);
    expect([a, b, c].map(({ heard }) => heard.map(({ params }) => params?.['uri']))).toEqual([
      ['f:/x', 'f:/x/sub'],
      [],
      [],
    ]);
  });

  test('log messages reach the only call in flight, else every client that wants that level', async () => {
    const { server, join, ask, settled } = await started(silent);
    const [a, b] = [join('a'), join('b')];
    expect(await ask(a, request(1, 'logging/setLevel', { level: 'error' })).done).toContain('"result"');
    say(server, 'notifications/message', { level: 'info', data: 'one' });
    await settled(b);
    const outcome = ask(b, call(1));
    await server.heard(isCall);
    say(server, 'notifications/message', { level: 'info', data: 'two' });
    await expect.poll(() => outcome.before.map(({ params }) => params?.['data'])).toEqual(['two']);
    expect([a.heard.length, b.heard.map(({ params }) => params?.['data'])]).toEqual([0, ['one']]);
  });

  test("a task's status reaches the client that created it", async () => {
    const { server, join, ask, settled } = await started((message, { reply }) => {
      if (!isCall(message)) return undefined;
      reply(message, { task: { taskId: 't1' } });
      return 'handled';
    });
    const [a, b] = [join('a'), join('b')];
    await ask(b, call(1)).done;
    say(server, 'notifications/tasks/status', { taskId: 't1' });
    say(server, 'notifications/tasks/status', { taskId: 'unknown' });
    await settled(a);
    expect([a.heard.length, b.heard.length]).toEqual([0, 1]);
  });

  test('banners, broken lines and answers to nothing are skipped', async () => {
    const { server, join, ask } = await started();
    for (const line of [
      'Server ready!',
      '',
      '   ',
      '{"jsonrpc":',
      '[1]',
      '{"jsonrpc":"2.0","id":77,"result":{}}',
    ])
      server.say(line);
    expect(await ask(join('a'), call(1)).done).toContain('"id":1');
  });
});
