import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { describe, expect, test } from 'vitest';
import { ask, openStream, postJson } from '../../doubles/http-client.ts';
import { memorySessionStore, type MemorySessionStore } from '../../doubles/memory-session-store.ts';
import { newSession, runningProxy } from '../../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../../doubles/scripted-http-server.ts';
import { RelayedSessions } from './relayed-sessions.ts';
import { Replicas, sharedBy } from './replicas.ts';
import { SessionOwners } from './session-owners.ts';
import { Upstream } from './upstream.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };
const TTL_MS = 7_200_000;
const listing = { jsonrpc: '2.0', id: 2, method: 'tools/list' };

async function pair() {
  const clock = manualClock();
  const store = memorySessionStore(clock);
  const server = await scriptedHttpServer('http');
  const [a, b] = [
    await runningProxy(server, { sessionStore: store, sessionTtlMs: TTL_MS, clock }),
    await runningProxy(server, { sessionStore: store, sessionTtlMs: TTL_MS, clock }),
  ];
  const statusAt = async (url: string, session: object): Promise<number> =>
    (await postJson(url, CALL, { ...session })).status;
  return {
    a,
    b,
    clock,
    server,
    store,
    statusAt,
    async [Symbol.asyncDispose]() {
      await Promise.all([a.close(), b.close()]);
      await server[Symbol.asyncDispose]();
    },
  };
}

describe('two replicas of one proxy', () => {
  test('serve one session, without asking for it more than once each', async () => {
    await using both = await pair();
    const session = await newSession(both.a.url);
    const asked = both.store.asked();
    expect(await both.statusAt(both.a.url, session)).toBe(200);
    expect(both.store.asked()).toBe(asked);
    for (const message of [CALL, listing])
      expect((await postJson(both.b.url, message, session)).status).toBe(200);
    expect(both.store.asked()).toBe(asked + 1);
    const stream = await openStream(both.b.url, {
      method: 'GET',
      headers: { ...session, Accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(200);
    stream.abort();
  });

  test('keep nothing where others read that would let them use it', async () => {
    await using both = await pair();
    const session = await newSession(both.a.url);
    const stored = JSON.stringify([...both.store.values]);
    expect(both.store.values.size).toBe(1);
    for (const word of [session['Mcp-Session-Id'], 'clientInfo', 'open', both.server.backend.target.host])
      expect(stored).not.toContain(word);
  });

  test('begin a session that the server has forgotten once, whoever is called first', async () => {
    await using both = await pair();
    const session = await newSession(both.a.url);
    expect(await both.statusAt(both.b.url, session)).toBe(200);
    both.server.forget();
    const urls = [both.a.url, both.b.url, both.b.url, both.a.url];
    const all = await Promise.all(urls.map((url) => both.statusAt(url, session)));
    expect(all).toEqual([200, 200, 200, 200]);
    for (const url of urls) expect(await both.statusAt(url, session)).toBe(200);
    both.server.forget();
    expect(await both.statusAt(both.b.url, session)).toBe(200);
    const stream = await openStream(both.a.url, {
      method: 'GET',
      headers: { ...session, Accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(200);
    stream.abort();
  });

  test('do not bring back what a client has ended through the other', async () => {
    await using both = await pair();
    const session = await newSession(both.a.url);
    expect(await both.statusAt(both.b.url, session)).toBe(200);
    const { status } = await ask(both.b.url, { method: 'DELETE', headers: session });
    expect(status).toBeLessThan(300);
    for (const url of [both.a.url, both.b.url]) {
      const answer = await postJson(url, CALL, session);
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([404, { error: { code: -32001 } }]);
    }
    expect(both.server.sessions).toBe(0);
  });

  test('serve what they know while the store is away, refuse the rest in one line, and write anew', async () => {
    await using both = await pair();
    const early = await newSession(both.a.url);
    both.store.leave();
    both.store.values.clear();
    const late = await newSession(both.a.url);
    for (const session of [early, late]) {
      expect(await both.statusAt(both.a.url, session)).toBe(200);
      const refused = await postJson(both.b.url, CALL, session);
      expect(refused).toMatchObject({
        status: 503,
        headers: { 'retry-after': '5' },
        text: expect.stringContaining('what other replicas know of sessions cannot be had now'),
      });
    }
    both.store.comeBack();
    for (const session of [early, late])
      await expect.poll(() => both.statusAt(both.b.url, session)).toBe(200);
    expect(both.store.values.size).toBe(2);
  });

  test('do not begin a session anew while nobody can say what the other did', async () => {
    await using both = await pair();
    const session = await newSession(both.a.url);
    both.store.leave();
    both.server.forget();
    expect(await both.statusAt(both.a.url, session)).toBe(503);
    both.store.comeBack();
    expect(await both.statusAt(both.a.url, session)).toBe(200);
  });

  test.each(['kept', 'lost'])(
    'do not bring back what was ended while the store was away, its data %s',
    async (data) => {
      await using both = await pair();
      const session = await newSession(both.a.url);
      expect(await both.statusAt(both.b.url, session)).toBe(200);
      both.store.leave();
      if (data === 'lost') both.store.values.clear();
      expect((await ask(both.a.url, { method: 'DELETE', headers: session })).status).toBeLessThan(300);
      expect(await both.statusAt(both.b.url, session)).toBe(503);
      both.store.comeBack();
      await expect.poll(() => both.statusAt(both.b.url, session)).toBe(404);
      expect(both.server.sessions).toBe(0);
    },
  );

  test('write nothing of sessions that nobody began, however often they are ended', async () => {
    await using both = await pair();
    for (const id of ['x', 'y', 'z'])
      expect((await ask(both.a.url, { method: 'DELETE', headers: { 'Mcp-Session-Id': id } })).status).toBe(
        404,
      );
    expect(both.store.values.size).toBe(0);
  });

  test('keep a session whose client only listens', async () => {
    await using both = await pair();
    const session = await newSession(both.a.url);
    const stream = await openStream(both.a.url, {
      method: 'GET',
      headers: { ...session, Accept: 'text/event-stream' },
    });
    for (let quarters = 0; quarters < 8; quarters += 1) {
      both.clock.pass(TTL_MS / 4);
      // What falls due is written by the time that it is read.
      await expect
        .poll(() => [...both.store.values.values()].map(({ until }) => until - both.clock.elapsed()))
        .toEqual([TTL_MS]);
    }
    stream.abort();
  });

  test('refuse a session of which what is stored was not written by one of them', async () => {
    await using both = await pair();
    const session = await newSession(both.a.url);
    for (const [key, { value, until }] of both.store.values)
      both.store.values.set(key, { value: `${value.slice(0, -4)}AAAA`, until });
    expect(await both.statusAt(both.b.url, session)).toBe(404);
    expect(await both.statusAt(both.a.url, session)).toBe(200);
  });
});

test('a proxy of a server with HTTP and SSE cannot share sessions', async () => {
  await using server = await scriptedHttpServer('sse');
  const starting = runningProxy(server, { sessionStore: memorySessionStore(manualClock()) });
  await expect(starting).rejects.toMatchObject({ code: 'proxy/step-unbuildable' });
});

describe('people who sign in', () => {
  const url = new URL('http://127.0.0.1/mcp');
  const opening = { url, body: '{"jsonrpc":"2.0","id":1,"method":"initialize"}' };

  function replica(store: MemorySessionStore) {
    const clock = manualClock();
    const shared = sharedBy(
      { kind: 'http', target: url },
      { sessionStore: store, sessionTtlMs: 1_000, log: silentLog },
    );
    if (shared === undefined) throw new TypeError('nothing is shared');
    const owners = new SessionOwners();
    const sessions = new RelayedSessions(new Upstream({}, clock), { clock, sessionTtlMs: 1_000, shared });
    const replicas = new Replicas(shared, sessions, owners);
    const open = (session: string, principal: string | undefined): Promise<boolean> =>
      replicas.accessTo({ session, principal, url }).then((access) => access === 'open');
    return { shared, open };
  }

  test('use their own sessions alone, at any replica, and none that nobody vouches for', async () => {
    const store = memorySessionStore(manualClock());
    const [a, b] = [replica(store), replica(store)];
    await a.shared.begun('s1', { is: 'open', principal: 'ann', name: 's1', body: opening.body });
    expect(await b.open('s1', 'bob')).toBe(false);
    expect(await b.open('s1', undefined)).toBe(false);
    expect(await b.open('s1', 'ann')).toBe(true);
    expect(await b.open('s1', 'bob')).toBe(false);
    expect(await b.open('s2', 'ann')).toBe(false);
  });

  test('keep a session that a server begins once more for somebody else', async () => {
    const store = memorySessionStore(manualClock());
    const [a, b] = [replica(store), replica(store)];
    await a.shared.begun('1', { is: 'open', principal: 'ann', name: '1', body: opening.body });
    await a.shared.begun('1', { is: 'open', principal: 'bob', name: '1', body: opening.body });
    expect(await b.open('1', 'ann')).toBe(true);
    expect(await b.open('1', 'bob')).toBe(false);
  });
});
