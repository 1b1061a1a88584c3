import { describe, expect, test } from 'vitest';
import type { ManualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { call, Client, isCall, notice, outcome, request, result, silent } from '../doubles/started-mux.ts';
import type { Script, ScriptedServer } from '../doubles/scripted-server.ts';
import { oneOff, type BackendPort, type Newcomer } from './port.ts';

/** One kind of backend in front of a server that answers as scripted. */
export interface PortUnderTest extends AsyncDisposable {
  readonly port: BackendPort;
  readonly server: Pick<ScriptedServer, 'received' | 'heard' | 'say'>;
  readonly clock: ManualClock;
}

/** A client that has initialized, and listens. */
async function joined(port: BackendPort, key: string): Promise<Client> {
  const client = new Client(key);
  await new Promise<void>((resolve, reject) => {
    const newcomer: Newcomer = {
      id: '"init"',
      wanted: undefined,
      welcome(reply) {
        expect(JSON.parse(reply.text)).toMatchObject({ id: 'init', result: { serverInfo: {} } });
        resolve();
        return client;
      },
      refuse: reject,
      fail: reject,
    };
    port.initialize(newcomer);
  });
  expect(port.notify(client, notice('notifications/initialized'))).toBe(true);
  port.listens(client);
  return client;
}

type Open = (script?: Script) => Promise<PortUnderTest>;

function ask(
  port: BackendPort,
  client: Client,
  message: ReturnType<typeof call>,
): ReturnType<typeof outcome> {
  const waiter = outcome();
  port.request(client, message, waiter);
  return waiter;
}

/** What every backend promises every face (decision 0319). */
export function portContract(name: string, open: Open): void {
  describe(`the port of a ${name} backend`, () => {
    callsOf(open);
    wordsOf(open);
    endsOf(open);
    proxyOf(open);
  });
}

function callsOf(open: Open): void {
  test.each(['"1"', '1', '12345678901234567890'])('answers the request %s under its own id', async (id) => {
    await using under = await open();
    const a = await joined(under.port, 'a');
    const waiter = outcome();
    under.port.request(a, { ...request('x', 'x/y', { is: id }), id }, waiter);
    expect(await waiter.done).toBe(
      `{"jsonrpc":"2.0","id":${id},"result":{"echo":{"is":${JSON.stringify(id)}}}}`,
    );
  });

  test('two clients use one id at the same time and get their own answers', async () => {
    await using under = await open();
    const [a, b] = [await joined(under.port, 'a'), await joined(under.port, 'b')];
    const answers = [ask(under.port, a, call(1, { of: 'a' })), ask(under.port, b, call(1, { of: 'b' }))];
    const texts = await Promise.all(answers.map(({ done }) => done));
    expect(texts.map((text) => JSON.parse(text).result.echo.of)).toEqual(['a', 'b']);
  });

  test('progress comes before the answer, to its call alone, under its own token', async () => {
    await using under = await open((message, { say, reply }) => {
      if (!isCall(message)) return undefined;
      const progressToken = Object(message.params)['_meta']?.progressToken;
      say(
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken, progress: 1 },
        }),
      );
      reply(message, {});
      return 'handled';
    });
    const [a, b] = [await joined(under.port, 'a'), await joined(under.port, 'b')];
    const asking = ask(under.port, a, call('c', { _meta: { progressToken: 'mine' } }));
    await asking.done;
    expect(asking.before).toMatchObject([{ params: { progressToken: 'mine', progress: 1 } }]);
    expect([a.heard, b.heard]).toEqual([[], []]);
  });
}

function wordsOf(open: Open): void {
  test('the server asks the client whose call is open, and nobody else can answer', async () => {
    await using under = await open((message, { say, reply }) => {
      if (isCall(message)) say('{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}');
      if (message.id === 'q')
        reply({ ...message, id: under.server.received.find(isCall)?.id }, message['result']);
      return isCall(message) || message.id === 'q' ? 'handled' : undefined;
    });
    const [a, b] = [await joined(under.port, 'a'), await joined(under.port, 'b')];
    const asking = ask(under.port, a, call(1));
    await expect.poll(() => asking.before).toMatchObject([{ method: 'elicitation/create' }]);
    const question = asking.before[0]?.id;
    under.port.answer(b, result(question, { stolen: true }));
    under.port.answer(a, result(question, { mine: true }));
    expect(JSON.parse(await asking.done)).toMatchObject({ id: 1, result: { mine: true } });
  });

  test('what concerns everybody reaches each client that listens, once', async () => {
    await using under = await open();
    const [a, b] = [await joined(under.port, 'a'), await joined(under.port, 'b')];
    await expect
      .poll(() => {
        if (a.heard.length === 0 || b.heard.length === 0)
          under.server.say('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
        return [a.heard.length > 0, b.heard.length > 0];
      })
      .toEqual([true, true]);
    const before = a.heard.length;
    under.server.say('{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}');
    await expect.poll(() => a.heard.length).toBe(before + 1);
    await ask(under.port, a, call(1)).done;
    expect(a.heard.filter(({ method }) => method === 'notifications/prompts/list_changed')).toHaveLength(1);
  });
}

function endsOf(open: Open): void {
  test('a cancelled call ends, and the server hears which one it was', async () => {
    await using under = await open(silent);
    const a = await joined(under.port, 'a');
    const asking = ask(under.port, a, call('c'));
    const { id } = await under.server.heard(isCall);
    under.port.notify(a, notice('notifications/cancelled', { requestId: 'c' }));
    expect(await asking.done).toBe('proxy/cancelled');
    const told = await under.server.heard(({ method }) => method === 'notifications/cancelled');
    expect(told.params).toMatchObject({ requestId: id });
  });

  test('a call without an answer ends with its time', async () => {
    await using under = await open(silent);
    const a = await joined(under.port, 'a');
    const asking = ask(under.port, a, call(1));
    await under.server.heard(isCall);
    under.clock.pass(60_000);
    expect(await asking.done).toBe('proxy/timeout');
    await under.server.heard(({ method }) => method === 'notifications/cancelled');
  });

  test('a client that leaves takes its calls along', async () => {
    await using under = await open(silent);
    const [a, b] = [await joined(under.port, 'a'), await joined(under.port, 'b')];
    const asking = ask(under.port, a, call(1));
    await under.server.heard(isCall);
    under.port.leave(a);
    expect(await asking.done).toBe('proxy/session-unknown');
    expect(JSON.parse(await ask(under.port, b, request(2, 'x/y')).done)).toMatchObject({ id: 2 });
  });

  test('where the server has ended, calls fail at once', async () => {
    await using under = await open(silent);
    const a = await joined(under.port, 'a');
    const asking = ask(under.port, a, call(1));
    await under.server.heard(isCall);
    under.port.ended();
    expect(await asking.done).toMatch(/^proxy\//);
    expect(under.port.state).toBe('lost');
    expect(await ask(under.port, a, call(2)).done).toMatch(/^proxy\//);
  });
}

function proxyOf(open: Open): void {
  test('a client without a session is answered', async () => {
    await using under = await open();
    await under.port.greet();
    const waiter = outcome();
    under.port.request(oneOff(), call(7), waiter);
    expect(JSON.parse(await waiter.done)).toMatchObject({ id: 7, result: { echo: {} } });
  });

  test('whoever runs the proxy can greet the server and ask it', async () => {
    await using under = await open();
    expect(await under.port.greet()).toMatchObject({ serverInfo: { name: 'scripted' } });
    expect(JSON.parse(await under.port.ask('tools/list', { n: 1 }))).toMatchObject({
      result: { echo: { n: 1 } },
    });
  });
}
