import * as fc from 'fast-check';
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
import type { Message, Notification } from '../../message/json-rpc.ts';

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

  test("hears the progress of who was asked, and nobody else's", async () => {
    const { server, mux, join, ask, settled } = await started(silent);
    const [a, b] = [join('a'), join('b')];
    ask(a, call(1));
    await server.heard(isCall);
    server.say(
      '{"jsonrpc":"2.0","id":"srv-1","method":"sampling/createMessage","params":{"_meta":{"progressToken":"p"}}}',
    );
    await settled(a);
    const progressOf = (progress: number): Notification =>
      notice('notifications/progress', { progressToken: 'p', progress });
    for (const taken of [mux.notify(b, progressOf(1)), mux.notify(a, progressOf(2))])
      expect(taken).toBe(true);
    mux.notify(a, notice('notifications/progress', { progressToken: 'q', progress: 3 }));
    mux.answer(a, result(1));
    mux.notify(a, progressOf(4));
    await settled(b);
    const told = server.received.filter(({ method }) => method === 'notifications/progress');
    expect(told.map(({ params }) => params?.['progress'])).toEqual([2]);
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

  test('a log message in the middle of several calls of one session goes to no other session', async () => {
    const { server, join, ask, settled } = await started(silent);
    const [a, b] = [join('a'), join('b')];
    const calls = [ask(a, call(1)), ask(a, call(2))];
    await server.heard(({ id }) => id === 2);
    say(server, 'notifications/message', { level: 'info', data: 'about a' });
    say(server, 'notifications/own', { data: 'about a' });
    await expect.poll(() => calls.flatMap(({ before }) => before).length).toBe(2);
    await settled(b);
    expect([a.heard, b.heard]).toEqual([[], []]);
  });

  test('a log message for a caller that only listens goes to its stream, never to another session', async () => {
    const { server, mux, join, settled } = await started(silent);
    const [a, b, deaf] = [join('a'), join('b'), join('deaf', false)];
    const waiter = { carries: false, send() {}, finish() {}, fail() {} };
    mux.request(a, call(1), waiter);
    await server.heard(isCall);
    say(server, 'notifications/message', { level: 'info', data: 'about a' });
    await expect.poll(() => a.heard.length).toBe(1);
    mux.leave(a);
    mux.request(deaf, call(1), waiter);
    await server.heard(({ id }) => id === 2);
    say(server, 'notifications/message', { level: 'info', data: 'about the deaf one' });
    await settled(b);
    expect(b.heard).toEqual([]);
  });

  test('a log message while two sessions wait goes to all that listen', async () => {
    const { server, join, ask, settled } = await started(silent);
    const [a, b, c] = [join('a'), join('b'), join('c')];
    for (const client of [a, b]) ask(client, call(1));
    await server.heard(({ id }) => id === 2);
    say(server, 'notifications/message', { level: 'info', data: 'whose?' });
    await settled(c);
    expect([a, b, c].map(({ heard }) => heard.length)).toEqual([1, 1, 1]);
  });

  test('names that a server makes up are not kept in any length', async () => {
    const long = 't'.repeat(2_000);
    const { server, join, ask, settled } = await started((message, { reply }) => {
      if (!isCall(message)) return undefined;
      reply(message, { task: { taskId: long } });
      return 'handled';
    });
    const a = join('a');
    await ask(a, call(1)).done;
    say(server, 'notifications/tasks/status', { taskId: long });
    await settled(a);
    expect(a.heard).toEqual([]);
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

describe('answers of a server', () => {
  test.each(['1', '"1"', '1.0', '1e0'])('that come back under the id %s find their call', async (id) => {
    const { server, join, ask } = await started(silent);
    const outcome = ask(join('a'), call('mine'));
    await server.heard(isCall);
    server.say(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    expect(JSON.parse(await outcome.done)).toEqual({ jsonrpc: '2.0', id: 'mine', result: {} });
  });

  test.each(['"01"', '" 1"', '-1', '1.5', 'true', '[1]', '{"a":1}'])(
    'under the id %s find none',
    async (id) => {
      const { server, join, ask, settled } = await started(silent);
      const a = join('a');
      const outcome = ask(a, call('mine'));
      await server.heard(isCall);
      server.say(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
      await settled(a);
      expect(await Promise.race([outcome.done, Promise.resolve('waits')])).toBe('waits');
    },
  );

  test('that are nested beyond reason end their own call at once, and no other', async () => {
    const { server, join, ask } = await started(silent);
    const a = join('a');
    const [deep, plain] = [ask(a, call(1)), ask(a, call(2))];
    await server.heard(({ id }) => id === 2);
    const depth = 2_000_000;
    // Of this thread: others may keep the machine busy.
    const before = process.threadCpuUsage();
    server.say(`{"jsonrpc":"2.0","id":1,"result":${'['.repeat(depth)}${']'.repeat(depth)}}`);
    expect(await deep.done).toBe('proxy/bad-gateway');
    const { user, system } = process.threadCpuUsage(before);
    expect(user + system).toBeLessThan(1_000_000);
    server.say('{"jsonrpc":"2.0","id":2,"result":{}}');
    expect(await plain.done).toContain('"id":2');
  });

  test('a line of JSON that happens to have an id in use fails no call', async () => {
    const { server, join, ask } = await started(silent);
    const outcome = ask(join('a'), call(7));
    await server.heard(isCall);
    server.say('{"id":1,"level":"info","msg":"started"}');
    server.reply({ id: 1 }, {});
    expect(await outcome.done).toContain('"result"');
  });

  test('whatever their order and the form of their ids, reach the session that asked', async () => {
    const forms = [(id: number) => String(id), (id: number) => `"${id}"`, (id: number) => `${id}.0`];
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            session: fc.nat(4),
            id: fc.oneof(fc.nat(3), fc.constantFrom('a', '1', '2')),
            form: fc.nat(2),
            order: fc.nat(),
          }),
          { minLength: 1, maxLength: 30 },
        ),
        async (plan) => {
          const { server, join, ask } = await started(silent);
          const sessions = Array.from({ length: 5 }, (_, n) => join(String(n)));
          const outcomes = plan.map(({ session, id }, n) => ask(sessions[session]!, call(id, { n })));
          await server.heard(({ params }) => params?.['n'] === plan.length - 1);
          const arrived = server.received.filter(isCall);
          const shuffled = arrived
            .map((message, n) => ({ message, ...plan[n]! }))
            .toSorted((x, y) => x.order - y.order);
          for (const { message, form } of shuffled) {
            const id = forms[form]!(Number(message.id));
            server.say(`{"jsonrpc":"2.0","id":${id},"result":{"n":${String(message.params?.['n'])}}}`);
          }
          const answers = await Promise.all(outcomes.map(({ done }) => done));
          expect(answers.map((text) => JSON.parse(text))).toEqual(
            plan.map(({ id }, n) => ({ jsonrpc: '2.0', id, result: { n } })),
          );
          expect(sessions.flatMap(({ heard }) => heard)).toEqual([]);
        },
      ),
      { numRuns: 50 },
    );
  });
});
