import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  AUDIENCE,
  fakeIssuer,
  ISSUER,
  signed,
  signingKey,
  type FakeIssuer,
  type SigningKey,
} from '@skep/auth/token/tokens.fixture.ts';
import { silentLog, type Log } from '@skep/core/log/log.ts';
import { manualClock, type ManualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { SessionSeal } from './backend/replicas/sealed-session.ts';
import type { Step } from './call/chain.ts';
import { ask, messagesIn, openStream, postJson, type Stream } from './doubles/http-client.ts';
import { memorySessionStore, type MemorySessionStore } from './doubles/memory-session-store.ts';
import { modernScript } from './doubles/modern.ts';
import { initializeRequest, newSession, runningProxy, type RunningProxy } from './doubles/running-proxy.ts';
import { scriptedHttpServer, type ScriptedHttpServer } from './doubles/scripted-http-server.ts';
import type { Received, Script } from './doubles/scripted-server.ts';
import { isCall } from './doubles/started-mux.ts';
import type { ProxyOptions } from './start.ts';
import type { SignInSettings } from './steps/sign-in.ts';

// Replicas of a proxy that reads messages, before one server of streamable HTTP (decision 0445).

const reads: Step = (_call, next) => next();
const MESSAGE = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };
const PING = { jsonrpc: '2.0', id: 2, method: 'ping' };
const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
const TTL_MS = 60_000;

interface Replicas extends AsyncDisposable {
  readonly a: RunningProxy;
  readonly b: RunningProxy;
  readonly clock: ManualClock;
  readonly store: MemorySessionStore;
  readonly server: ScriptedHttpServer;
  readonly start: (more?: Partial<ProxyOptions>) => Promise<RunningProxy>;
}

async function replicas(script?: Script, options: Partial<ProxyOptions> = {}): Promise<Replicas> {
  const server = await scriptedHttpServer('http', script);
  const clock = manualClock();
  const store = memorySessionStore(clock);
  const started: RunningProxy[] = [];
  const start = async (more: Partial<ProxyOptions> = {}): Promise<RunningProxy> => {
    const proxy = await runningProxy(server, {
      steps: { 'tool-filter': reads },
      sessionStore: store,
      sessionTtlMs: TTL_MS,
      clock,
      ...options,
      ...more,
    });
    started.push(proxy);
    return proxy;
  };
  return {
    a: await start(),
    b: await start(),
    clock,
    store,
    server,
    start,
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((one) => one.close()));
      await server[Symbol.asyncDispose]();
    },
  };
}

const statusOf = async (
  url: string,
  session: OutgoingHttpHeaders,
  message: object = MESSAGE,
): Promise<number> => (await postJson(url, message, { ...session })).status;

const listen = (url: string, session: OutgoingHttpHeaders, more: OutgoingHttpHeaders = {}): Promise<Stream> =>
  openStream(url, { method: 'GET', headers: { Accept: 'text/event-stream', ...session, ...more } });

async function next(stream: Stream): Promise<Received & { readonly at: string | undefined }> {
  for (;;) {
    const event = await stream.next();
    if (event === undefined) throw new TypeError('the stream has ended');
    if (event.data !== '') return { ...JSON.parse(event.data), at: event.id };
  }
}

/** What a server asks is heard, whichever of its messages comes first. */
async function hears(stream: Stream, server: ScriptedHttpServer): Promise<void> {
  const heard = next(stream);
  let isHeard = false;
  void heard.then(() => (isHeard = true));
  await expect
    .poll(() => {
      server.say(CHANGED);
      return isHeard;
    })
    .toBe(true);
  expect(await heard).toMatchObject({ method: 'notifications/tools/list_changed' });
}

describe('a session of a proxy that reads', () => {
  test('is served by every replica, over one session of the server', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    for (const { url } of [it.b, it.a, it.b]) {
      const answer = await postJson(url, { ...MESSAGE, id: 'mine' }, session);
      expect(messagesIn(answer)).toEqual([{ jsonrpc: '2.0', id: 'mine', result: { echo: { name: 'x' } } }]);
    }
    expect(it.server.sessions).toBe(1);
    expect(it.server.received.filter(({ method }) => method === 'initialize')).toHaveLength(1);
    // No two requests of one session have one id (MCP 2025-11-25, requests).
    const ids = it.server.received.filter(({ method, id }) => method && id !== undefined).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('may be announced at another replica than it began', async () => {
    await using it = await replicas();
    const began = await postJson(it.a.url, initializeRequest());
    const session = { 'Mcp-Session-Id': String(began.headers['mcp-session-id']) };
    expect(await statusOf(it.b.url, session, { jsonrpc: '2.0', method: 'notifications/initialized' })).toBe(
      202,
    );
    await it.server.heard(({ method }) => method === 'notifications/initialized');
  });

  test('goes on when its replica ends, and the next, as the server hears of neither', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    await it.a.close();
    expect(await statusOf(it.b.url, session)).toBe(200);
    await it.b.close();
    const c = await it.start();
    expect(await statusOf(c.url, session)).toBe(200);
    expect(it.server.sessions).toBe(1);
    expect(it.server.received.filter(({ method }) => method === 'initialize')).toHaveLength(1);
  });

  test('is over everywhere when it was ended anywhere, also for what no server answers', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    expect(await statusOf(it.b.url, session)).toBe(200);
    const streamAtA = await listen(it.a.url, session);
    expect((await ask(it.b.url, { method: 'DELETE', headers: session })).status).toBe(204);
    await expect.poll(() => it.server.sessions).toBe(0);
    for (const { url } of [it.a, it.b]) {
      const answer = await postJson(url, PING, session);
      expect([answer.status, JSON.parse(answer.text)]).toEqual([
        404,
        { jsonrpc: '2.0', id: 2, error: { code: -32001, message: 'Session not found' } },
      ]);
      expect(await statusOf(url, session)).toBe(404);
      expect((await listen(url, session)).status).toBe(404);
      expect((await ask(url, { method: 'DELETE', headers: session })).status).toBe(404);
    }
    // What is over here ends its streams.
    for (;;) if ((await streamAtA.next()) === undefined) break;
    expect(it.server.received.filter(({ method }) => method === 'initialize')).toHaveLength(1);
  });

  test('is let go where nobody uses it, and lives on where somebody does', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    for (let quarters = 0; quarters < 8; quarters += 1) {
      it.clock.pass(TTL_MS / 4);
      expect(await statusOf(it.b.url, session, PING)).toBe(200);
    }
    expect(await statusOf(it.a.url, session)).toBe(200);
    expect(it.server.sessions).toBe(1);
    it.clock.pass(TTL_MS + 1);
    for (const { url } of [it.a, it.b]) expect(await statusOf(url, session, PING)).toBe(404);
  });

  test('lives as long as a client listens anywhere', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    const stream = await listen(it.a.url, session);
    for (let halves = 0; halves < 6; halves += 1) {
      const asked = it.store.asked();
      it.clock.pass(TTL_MS / 2);
      await expect.poll(() => it.store.asked()).toBeGreaterThan(asked + 1);
    }
    expect(await statusOf(it.b.url, session, PING)).toBe(200);
    stream.abort();
  });

  test('is begun anew once when the server has forgotten it, and nothing is left of what lost', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    expect(await statusOf(it.b.url, session)).toBe(200);
    it.server.forget();
    const urls = [it.a.url, it.b.url, it.b.url, it.a.url];
    expect(await Promise.all(urls.map((url) => statusOf(url, session)))).toEqual([200, 200, 200, 200]);
    await expect.poll(() => it.server.sessions).toBe(1);
    for (const url of urls) expect(await statusOf(url, session)).toBe(200);
    expect(it.server.sessions).toBe(1);
  });

  test('keeps nothing where others read that would let them use it', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    const stored = JSON.stringify([...it.store.values]);
    expect(it.store.values.size).toBe(1);
    for (const word of [session['Mcp-Session-Id'], 'clientInfo', 'own', 'abilities'])
      expect(stored).not.toContain(word);
  });
});

describe('what the server says unasked', () => {
  test('reaches the replica that has the stream', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    const atA = await listen(it.a.url, session);
    await hears(atA, it.server);
    atA.abort();
    const atB = await listen(it.b.url, session);
    await hears(atB, it.server);
    atB.abort();
  });

  test('reaches the replica that was listened at last, once the server has missed the other', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    const atA = await listen(it.a.url, session);
    await hears(atA, it.server);
    // The server refuses the second stream of a session.
    const atB = await listen(it.b.url, session);
    const refused = it.clock.slept.length;
    await expect.poll(() => it.clock.slept.length).toBeGreaterThan(refused + 2);
    atA.abort();
    await hears(atB, it.server);
    atB.abort();
  });

  test('of a resource reaches it too, whichever replica took the subscription, until it is taken back', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    const about = (method: string): object => ({ jsonrpc: '2.0', id: 5, method, params: { uri: 'x://1' } });
    expect(await statusOf(it.a.url, session, about('resources/subscribe'))).toBe(200);
    const stream = await listen(it.b.url, session);
    await hears(stream, it.server);
    const updated = '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://1/2"}}';
    it.server.say(updated);
    const heard = async (): Promise<Received> => {
      const one = await next(stream);
      return one.method === 'notifications/tools/list_changed' ? heard() : one;
    };
    expect(await heard()).toMatchObject(JSON.parse(updated));
    expect(await statusOf(it.b.url, session, about('resources/unsubscribe'))).toBe(200);
    await it.server.heard(({ method }) => method === 'resources/unsubscribe');
    stream.abort();
  });

  test('has the level that was set last, wherever', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    const set = (level: string): object => ({
      jsonrpc: '2.0',
      id: 6,
      method: 'logging/setLevel',
      params: { level },
    });
    for (const [url, level] of [
      [it.a.url, 'debug'],
      [it.b.url, 'error'],
      [it.a.url, 'debug'],
    ] as const)
      expect(await statusOf(url, session, set(level))).toBe(200);
    const told = it.server.received.filter(({ method }) => method === 'logging/setLevel');
    expect(told.map(({ params }) => params?.['level'])).toEqual(['debug', 'error', 'debug']);
  });
});

describe('a question of the server', () => {
  const asking: Script = (message, { say, reply }) => {
    if (isCall(message)) {
      const params = { message: 'sure?', requestedSchema: { type: 'object', properties: {} } };
      say(JSON.stringify({ jsonrpc: '2.0', id: 'q-7', method: 'elicitation/create', params }));
      return 'handled';
    }
    if (message.id !== 'q-7') return undefined;
    reply({ ...message, id: calls.at(-1)?.id }, { answered: message['result'] });
    return 'handled';
  };
  let calls: Received[] = [];
  const following: Script = (message, server) => {
    if (isCall(message)) calls.push(message);
    return asking(message, server);
  };
  const able = {
    ...initializeRequest(),
    params: { ...Object(initializeRequest()).params, capabilities: { elicitation: {} } },
  };

  async function asked(url: string, session: OutgoingHttpHeaders): Promise<Stream> {
    return openStream(url, {
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...session,
      },
      body: JSON.stringify(MESSAGE),
    });
  }

  test.each(['where it was asked', 'elsewhere'])('can be answered %s', async (where) => {
    calls = [];
    await using it = await replicas(following);
    const began = await postJson(it.a.url, able);
    const session = { 'Mcp-Session-Id': String(began.headers['mcp-session-id']) };
    const stream = await asked(it.b.url, session);
    const question = await next(stream);
    expect(question).toMatchObject({ method: 'elicitation/create', id: 'q-7' });
    const url = where === 'elsewhere' ? it.a.url : it.b.url;
    const answer = { jsonrpc: '2.0', id: question.id, result: { action: 'accept' } };
    expect(await statusOf(url, session, answer)).toBe(202);
    expect(await next(stream)).toMatchObject({ id: 1, result: { answered: { action: 'accept' } } });
    stream.abort();
  });

  test('is not asked of a client that cannot be asked it, at any replica', async () => {
    calls = [];
    await using it = await replicas(following);
    const session = await newSession(it.a.url);
    const stream = await asked(it.b.url, session);
    const refused = await it.server.heard(({ id }) => id === 'q-7');
    expect(refused).toMatchObject({ error: { code: -32601 } });
    stream.abort();
  });

  test('of a modern server is refused in words where another replica has it', async () => {
    const needing = modernScript((message, { reply }) => {
      if (!isCall(message) || message.params?.['inputResponses'] !== undefined) return undefined;
      const params = { message: 'sure?', requestedSchema: { type: 'object', properties: {} } };
      const inputRequests = { sure: { method: 'elicitation/create', params } };
      reply(message, { resultType: 'input_required', inputRequests });
      return 'handled';
    });
    await using it = await replicas(needing);
    const began = await postJson(it.a.url, able);
    const session = { 'Mcp-Session-Id': String(began.headers['mcp-session-id']) };
    const streams = [await asked(it.a.url, session), await asked(it.b.url, session)];
    const [, question] = await Promise.all(streams.map(next));
    const answer = { jsonrpc: '2.0', id: question?.id, result: { action: 'accept' } };
    const refused = await postJson(it.a.url, answer, session);
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      409,
      { error: { message: 'another replica of the proxy asked this, and it alone can take the answer' } },
    ]);
    expect(await statusOf(it.b.url, session, answer)).toBe(202);
    for (const stream of streams) stream.abort();
  });
});

describe('Last-Event-ID of another replica', () => {
  const speaking: Script = (message, { say }) => {
    if (!isCall(message)) return undefined;
    say('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"first"}}');
    return 'handled';
  };

  test('has nothing sent again, and no answer waited for that never comes', async () => {
    await using it = await replicas(speaking);
    const session = await newSession(it.a.url);
    const call = await openStream(it.a.url, {
      headers: {
        'Content-Type': 'application/json',
        Accept: 'text/event-stream, application/json',
        ...session,
      },
      body: JSON.stringify(MESSAGE),
    });
    const { at } = await next(call);
    call.abort();
    const refused = await listen(it.b.url, session, { 'Last-Event-ID': at });
    expect(refused.status).toBe(409);
    const again = await listen(it.a.url, session, { 'Last-Event-ID': at });
    expect(again.status).toBe(200);
    again.abort();
  });

  test('opens the stream anew where it was of what the server says unasked', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    const atA = await listen(it.a.url, session);
    const first = await atA.next();
    atA.abort();
    const atB = await listen(it.b.url, session, { 'Last-Event-ID': first?.id });
    expect(atB.status).toBe(200);
    await hears(atB, it.server);
    atB.abort();
  });
});

describe('while the store is away', () => {
  test('a replica serves what it knows, refuses the rest, and tells all of it later', async () => {
    await using it = await replicas();
    const early = await newSession(it.a.url);
    it.store.leave();
    it.store.values.clear();
    const late = await newSession(it.a.url);
    for (const session of [early, late]) {
      expect(await statusOf(it.a.url, session)).toBe(200);
      const refused = await postJson(it.b.url, MESSAGE, session);
      expect([refused.status, refused.headers['retry-after'], JSON.parse(refused.text)]).toMatchObject([
        503,
        '5',
        { id: 1, error: { message: 'what other replicas know of sessions cannot be had now' } },
      ]);
    }
    it.store.comeBack();
    for (const session of [early, late]) await expect.poll(() => statusOf(it.b.url, session)).toBe(200);
  });

  test('a store that gives no answer is not asked with each request of a session that is known', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    it.store.leave();
    expect(await statusOf(it.a.url, session)).toBe(200);
    const asked = it.store.asked();
    for (let times = 0; times < 5; times += 1) expect(await statusOf(it.a.url, session)).toBe(200);
    expect(it.store.asked()).toBe(asked);
    it.clock.pass(5_000);
    expect(await statusOf(it.a.url, session)).toBe(200);
    expect(it.store.asked()).toBe(asked + 1);
  });

  test('nothing that the server forgot is begun anew', async () => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    it.store.leave();
    it.server.forget();
    expect(await statusOf(it.a.url, session)).toBe(503);
    it.store.comeBack();
    expect(await statusOf(it.a.url, session)).toBe(200);
    expect(it.server.sessions).toBe(1);
  });

  test.each(['kept', 'lost'])('what a client ends stays ended when it is back, its data %s', async (data) => {
    await using it = await replicas();
    const session = await newSession(it.a.url);
    expect(await statusOf(it.b.url, session)).toBe(200);
    it.store.leave();
    if (data === 'lost') it.store.values.clear();
    expect((await ask(it.a.url, { method: 'DELETE', headers: session })).status).toBe(204);
    it.store.comeBack();
    await expect.poll(() => statusOf(it.b.url, session)).toBe(404);
    expect(it.server.received.filter(({ method }) => method === 'initialize')).toHaveLength(1);
  });
});

describe('a store that lies', () => {
  test('gives nobody a session that is not theirs', async () => {
    await using it = await replicas();
    const [one, two] = [await newSession(it.a.url), await newSession(it.a.url)];
    const [first, second] = [...it.store.values.entries()];
    if (first === undefined || second === undefined) throw new TypeError('nothing is stored');
    it.store.values.set(first[0], second[1]);
    it.store.values.set(second[0], { ...second[1], value: `${second[1].value.slice(0, -4)}AAAA` });
    for (const session of [one, two])
      for (const { url } of [it.b, it.a]) expect(await statusOf(url, session)).toBe(404);
  });

  test('makes no session of a proxy out of one of its server', async () => {
    await using it = await replicas();
    const id = crypto.randomUUID();
    const { origin } = it.server.backend.target;
    const seal = new SessionSeal(id, `${origin}/`);
    const body = JSON.stringify(initializeRequest());
    const value = seal.seal({ is: 'open', principal: null, name: id, body });
    it.store.values.set(seal.place, { value, until: Number.POSITIVE_INFINITY });
    expect(await statusOf(it.a.url, { 'Mcp-Session-Id': id })).toBe(404);
  });

  test('is not asked for what no replica calls a session', async () => {
    await using it = await replicas();
    const asked = it.store.asked();
    for (const id of ['x', 'y'.repeat(4_000)])
      expect(await statusOf(it.a.url, { 'Mcp-Session-Id': id })).toBe(404);
    expect(it.store.asked()).toBe(asked);
  });
});

describe('people who sign in', () => {
  let issuer: FakeIssuer;
  const provider = createServer((req, res) => {
    void issuer.fetch(`${ISSUER}${req.url}`).then(async (answer) => {
      res.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    });
  });
  let key: SigningKey;
  let signIn: SignInSettings;
  beforeAll(async () => {
    key = await signingKey('k1');
    issuer = fakeIssuer([key]);
    provider.listen(0, '127.0.0.1');
    await once(provider, 'listening');
    const jwksUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/jwks`;
    signIn = { issuer: ISSUER, jwksUrl, audience: AUDIENCE, allowHttp: true, allowPrivateIP: true };
  });
  afterAll(() => new Promise((resolve) => provider.close(resolve)));

  test('have their own sessions at every replica, whoever asks first, and what is known of one is no other one’s', async () => {
    await using it = await replicas(undefined, { signIn });
    const [ann, bob] = await Promise.all(
      ['ann', 'bob'].map(async (sub) => ({ Authorization: `Bearer ${await signed(key, { sub })}` })),
    );
    const session = await newSession(it.a.url, undefined, ann);
    const as = (who: OutgoingHttpHeaders | undefined): OutgoingHttpHeaders => ({ ...who, ...session });
    // Both at once, where neither is known yet.
    const first = await Promise.all([statusOf(it.b.url, as(bob)), statusOf(it.b.url, as(ann))]);
    expect(first).toEqual([404, 200]);
    for (const { url } of [it.a, it.b]) {
      expect(await statusOf(url, as(bob), PING)).toBe(404);
      expect((await ask(url, { method: 'DELETE', headers: as(bob) })).status).toBe(404);
      expect((await listen(url, as(bob))).status).toBe(404);
      expect(await statusOf(url, as(ann), PING)).toBe(200);
    }
    it.store.leave();
    expect(await statusOf(it.b.url, as(bob))).toBe(404);
    expect(await statusOf(it.b.url, as(ann))).toBe(200);
  });
});

test('the server is shown at each replica what the call there brought, as where tokens are exchanged', async () => {
  const exchanging: Step = (call, next) => {
    call.credentials = { header: 'x-token', value: String(call.req.headers['x-mine']) };
    return next();
  };
  await using it = await replicas(undefined, { steps: { 'tool-filter': exchanging } });
  const session = await newSession(it.a.url, undefined, { 'X-Mine': 'first' });
  for (const [url, token] of [
    [it.b.url, 'second'],
    [it.a.url, 'third'],
    [it.b.url, 'fourth'],
  ] as const) {
    expect(await statusOf(url, { ...session, 'X-Mine': token })).toBe(200);
    expect(it.server.headers.at(-1)).toMatchObject({ 'x-token': token });
  }
  it.server.forget();
  expect(await statusOf(it.b.url, { ...session, 'X-Mine': 'fifth' })).toBe(200);
  // What begins the session anew is shown with the same.
  for (const headers of it.server.headers.slice(-3)) expect(headers).toMatchObject({ 'x-token': 'fifth' });
});

test('a hook that fails takes its own request with it, and nothing else', async () => {
  let isBroken = true;
  const failing: Step = (call, next) => {
    if (isBroken)
      call.replyHooks.push(() => {
        throw new Error('a defect');
      });
    return next();
  };
  await using it = await replicas(undefined, { steps: { 'tool-filter': failing } });
  await expect(postJson(it.a.url, initializeRequest())).rejects.toThrow('socket hang up');
  isBroken = false;
  const session = await newSession(it.a.url);
  expect(await statusOf(it.b.url, session)).toBe(200);
});

test('a store full of what nobody can read is told of a few times, and not with each request', async () => {
  const lines: string[] = [];
  const warn = (_: object, message: string): void => void lines.push(message);
  const log: Log = { ...silentLog, warn, child: () => log };
  await using it = await replicas(undefined, { log });
  for (let times = 0; times < 30; times += 1) {
    const session = await newSession(it.a.url);
    for (const [at, { until }] of it.store.values) it.store.values.set(at, { value: 'x', until });
    expect(await statusOf(it.b.url, session)).toBe(404);
  }
  const told = lines.filter((line) => line === 'what is stored of a session cannot be read');
  expect(told.length).toBeGreaterThan(0);
  expect(told.length).toBeLessThanOrEqual(10);
});

describe.each([
  ['reads', { steps: { 'tool-filter': reads } }],
  ['relays', { steps: {} }],
])('a legacy client of a modern server, whose proxy %s', (_, options) => {
  test('is served by every replica, and hears of changes at either', async () => {
    await using it = await replicas(modernScript(), options);
    const session = await newSession(it.a.url);
    expect(await statusOf(it.b.url, session)).toBe(200);
    const stream = await listen(it.b.url, session);
    expect(stream.status).toBe(200);
    const { params } = await it.server.heard(({ method }) => method === 'subscriptions/listen');
    expect(params).toMatchObject({ notifications: { toolsListChanged: true } });
    stream.abort();
    await it.a.close();
    expect(await statusOf(it.b.url, session)).toBe(200);
    expect((await ask(it.b.url, { method: 'DELETE', headers: session })).status).toBe(204);
    const c = await it.start();
    for (const { url } of [it.b, c]) expect(await statusOf(url, session, PING)).toBe(404);
  });
});
