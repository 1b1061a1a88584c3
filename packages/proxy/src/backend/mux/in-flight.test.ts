import * as fc from 'fast-check';
import { silentLog } from '@skep/core/log/log.ts';
import { describe, expect, test } from 'vitest';
import {
  call,
  type Client,
  isCall,
  notice,
  read,
  request,
  silent,
  started,
  TIMEOUT_MS,
} from '../../doubles/started-mux.ts';
import type { Request } from '../../message/json-rpc.ts';
import { oneOff } from '../port.ts';

describe('ids of many clients on one pipe', () => {
  const ids = fc.oneof(
    fc.constantFrom('1', '"1"', '0', '-0', '1.50', '1e3', '12345678901234567890', '"\\u0031"', '""'),
    fc.string().map((text) => JSON.stringify(text)),
    fc.integer().map(String),
  );

  test('never cross, in whatever order the server answers and however ids repeat', async () => {
    const asked = fc.array(fc.record({ client: fc.nat(3), id: ids, order: fc.nat() }), {
      minLength: 1,
      maxLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(asked, async (calls) => {
        const { server, join, ask, mux } = await started(silent);
        const clients = [0, 1, 2, 3].map((n) => join(String(n)));
        const outcomes = calls.map(({ client, id }, mark) =>
          ask(
            clients[client]!,
            read(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"mark":${mark}}}`) as Request,
          ),
        );
        await server.heard(({ params }) => params?.['mark'] === calls.length - 1);
        const arrived = server.received.filter(isCall);
        expect(new Set(arrived.map(({ id }) => id)).size).toBe(calls.length);
        const byOrder = arrived.toSorted(
          (a, b) => calls[Number(a.params?.['mark'])]!.order - calls[Number(b.params?.['mark'])]!.order,
        );
        for (const message of byOrder) server.reply(message, { mark: message.params?.['mark'] });
        const texts = await Promise.all(outcomes.map(({ done }) => done));
        expect(texts).toEqual(
          calls.map(({ id }, mark) => `{"jsonrpc":"2.0","id":${id},"result":{"mark":${mark}}}`),
        );
        expect(mux.waiting).toBe(0);
        mux.close();
      }),
      { numRuns: 60 },
    );
  });

  test('leave every other character of request and reply alone', async () => {
    const { server, join, ask } = await started(silent);
    const outcome = ask(
      join('a'),
      read(
        '{"jsonrpc":"2.0","x":1.0,"id":"q","method":"tools/call","params":{"big":12345678901234567890}}',
      ) as Request,
    );
    await server.heard(isCall);
    expect(server.lines.at(-1)).toBe(
      '{"jsonrpc":"2.0","x":1.0,"id":1,"method":"tools/call","params":{"big":12345678901234567890}}',
    );
    server.say('{"unknown":[1.50],"id":1,"result":{"big":98765432109876543210},"jsonrpc":"2.0"}');
    expect(await outcome.done).toBe(
      '{"unknown":[1.50],"id":"q","result":{"big":98765432109876543210},"jsonrpc":"2.0"}',
    );
  });
});

describe('progress', () => {
  test('reaches the call that asked, under its own token, and proves life', async () => {
    const { server, clock, join, ask, settled } = await started(silent);
    const [a, b] = [join('a'), join('b')];
    const token = { _meta: { progressToken: 'same' } };
    const [first, second] = [ask(a, call(1, token)), ask(b, call(1, token))];
    const messages = [await server.heard(({ id }) => id === 1), await server.heard(({ id }) => id === 2)];
    expect(messages.map(({ params }) => params?.['_meta'])).toEqual([
      { progressToken: 1 },
      { progressToken: 2 },
    ]);
    clock.pass(TIMEOUT_MS - 1);
    server.say(JSON.stringify(notice('notifications/progress', { progressToken: 2, progress: 5 }).value));
    await settled(a);
    clock.pass(2);
    expect(await first.done).toBe('proxy/timeout');
    server.reply(messages[1]!, {});
    expect(await second.done).toContain('"id":1');
    expect([first.before.length, second.before]).toMatchObject([
      0,
      [{ params: { progressToken: 'same', progress: 5 } }],
    ]);
    expect([a.heard, b.heard]).toEqual([[], []]);
  });

  test("after the answer, or under a stranger's token, goes nowhere", async () => {
    const { server, join, ask, settled } = await started(silent);
    const a = join('a');
    const outcome = ask(a, call(1, { _meta: { progressToken: 7 } }));
    const message = await server.heard(isCall);
    server.reply(message, {});
    await outcome.done;
    for (const progressToken of [1, 7, '1', { a: 1 }]) {
      server.say(JSON.stringify(notice('notifications/progress', { progressToken }).value));
    }
    await settled(a);
    expect([outcome.before, a.heard]).toEqual([[], []]);
  });

  test('for a call that asked for none goes nowhere', async () => {
    const { server, join, ask, settled } = await started(silent);
    const a = join('a');
    const outcome = ask(a, call(1));
    await server.heard(isCall);
    server.say('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}');
    await settled(a);
    expect(outcome.before).toEqual([]);
  });

  test("a doubled token is refused, for it could be another client's", async () => {
    const { server, join, ask } = await started();
    const text =
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1,"progressToken":2}}}';
    expect(await ask(join('a'), read(text) as Request).done).toBe('proxy/not-json-rpc');
    expect(server.received).toEqual([]);
  });
});

describe('cancellation and timeouts', () => {
  test('a cancellation names the call of that client only', async () => {
    const { server, mux, join, ask } = await started(silent);
    const [a, b] = [join('a'), join('b')];
    const [mine, other] = [ask(a, call(1)), ask(b, call(1))];
    const theirs = await server.heard(({ id }) => id === 2);
    expect(mux.notify(a, notice('notifications/cancelled', { requestId: 1, reason: 'why' }))).toBe(true);
    expect(await mine.done).toBe('proxy/cancelled');
    const cancelled = await server.heard(({ method }) => method === 'notifications/cancelled');
    expect(cancelled.params).toEqual({ requestId: 1, reason: 'why' });
    server.reply(theirs, { ok: true });
    expect(await other.done).toContain('"ok":true');
  });

  test('a cancellation of nothing goes nowhere', async () => {
    const { server, mux, join, settled } = await started(silent);
    const a = join('a');
    mux.notify(a, notice('notifications/cancelled', { requestId: 99 }));
    await settled(a);
    expect(server.received.filter(({ method }) => method === 'notifications/cancelled')).toEqual([]);
  });

  test('a call that takes too long fails, and the server hears of it', async () => {
    const { server, clock, join, ask } = await started(silent);
    const outcome = ask(join('a'), call('slow'));
    await server.heard(isCall);
    clock.pass(TIMEOUT_MS);
    expect(await outcome.done).toBe('proxy/timeout');
    expect(await server.heard(({ method }) => method === 'notifications/cancelled')).toMatchObject({
      params: { requestId: 1 },
    });
  });

  test('when a session ends its calls are cancelled and its subscriptions ended', async () => {
    const { server, mux, join, ask } = await started(silent);
    const a = join('a');
    await ask(a, request(1, 'resources/subscribe', { uri: 'x:1' })).done;
    const outcome = ask(a, call(2));
    await server.heard(isCall);
    mux.leave(a);
    expect(await outcome.done).toBe('proxy/session-unknown');
    expect(await server.heard(({ method }) => method === 'notifications/cancelled')).toMatchObject({
      params: { requestId: 2 },
    });
    expect(await server.heard(({ method }) => method === 'resources/unsubscribe')).toMatchObject({
      params: { uri: 'x:1' },
    });
  });
});

describe('the table of calls in flight', () => {
  test('by many sessions of one principal leave room for a session of another', async () => {
    const { server, join, ask } = await started(silent);
    const sessionOf = (principal: string, name: string): Client =>
      Object.assign(join(`${principal} ${name}`), { principal });
    for (const name of ['a', 'b', 'c']) {
      const session = sessionOf('me', name);
      for (let n = 0; n < 1024; n += 1) ask(session, call(n));
    }
    expect(await ask(sessionOf('me', 'd'), call('one more')).done).toBe('proxy/busy');
    const other = sessionOf('you', 'a');
    for (let n = 0; n < 1023; n += 1) ask(other, call(n));
    const last = ask(other, call('last'));
    const arrived = await server.heard(({ id }) => id === 4096);
    server.reply(arrived, { ok: true });
    expect(await last.done).toContain('"ok":true');
  });

  test('is not filled by one session', async () => {
    const { join, ask } = await started(silent);
    const [greedy, other] = [join('a'), join('b')];
    for (let n = 0; n < 1_024; n += 1) ask(greedy, call(n));
    expect(await ask(greedy, call('one more')).done).toBe('proxy/busy');
    const outcome = ask(other, request('b', 'ping'));
    expect(await outcome.done).toContain('"id":"b"');
    const theirs = ask(other, call(1));
    expect(await Promise.race([theirs.done, Promise.resolve('waits')])).toBe('waits');
  });

  test('has room for sessions, however many clients without one there are', async () => {
    const { server, join, ask } = await started((message) => (isCall(message) ? 'handled' : undefined));
    const all = Array.from({ length: 2_048 }, (_, n) => ask(oneOff(), call(n)));
    expect(await ask(oneOff(), call('refused')).done).toBe('proxy/busy');
    const session = ask(join('a'), request('a', 'x/echo'));
    expect(await session.done).toContain('"id":"a"');
    for (const message of server.received.filter(isCall)) server.reply(message, {});
    await Promise.all(all.map(({ done }) => done));
    expect(await ask(oneOff(), request('again', 'x/echo')).done).toContain('"id":"again"');
  });
});

describe('an array of messages from the server', () => {
  test('answers every call in it, and what is no message in it harms nothing', async () => {
    const { server, join, ask } = await started(silent);
    const [a, b] = [join('a'), join('b')];
    const outcomes = [ask(a, call('x')), ask(b, call('x')), ask(a, call('y'))];
    await server.heard(({ id }) => id === 3);
    server.say(
      ' [{"jsonrpc":"2.0","id":3,"result":{"n":3.0}} , 7, [], {"id":1}, ' +
        '{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"],{"}},{"jsonrpc":"2.0","id":1,"result":{}}]',
    );
    expect(await Promise.all(outcomes.map(({ done }) => done))).toEqual([
      '{"jsonrpc":"2.0","id":"x","result":{}}',
      '{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"],{"}}',
      '{"jsonrpc":"2.0","id":"y","result":{"n":3.0}}',
    ]);
  });

  test('is warned about once, however many there are', async () => {
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (_: object, message: string) => void warnings.push(message) };
    const { server, join, settled } = await started(silent, log);
    for (let n = 0; n < 20; n += 1) server.say('[]');
    await settled(join('a'));
    expect(warnings).toEqual([expect.stringContaining('2025-03-26')]);
  });
});
