import { expect, test } from 'vitest';
import { call, isCall, outcome, request, silent, started } from '../../doubles/started-mux.ts';
import type { Script } from '../../doubles/scripted-server.ts';
import { abilitiesIn } from '../../message/client-abilities.ts';
import type { Peer } from '../port.ts';
import { ModernCalls } from './modern-calls.ts';

function caller(key: string, more: Partial<Peer> = {}): Peer {
  const abilities = abilitiesIn({ roots: {} });
  return { kind: 'call', key, listener: undefined, abilities, logLevel: undefined, unanswered: 0, ...more };
}

const setsLevel = ({ method }: { readonly method?: string }): boolean => method === 'logging/setLevel';

test('a call that is cancelled before the server took its level is not made', async () => {
  const script: Script = (message) => (setsLevel(message) ? 'handled' : undefined);
  const { server, mux, clock, settled } = await started(script);
  const calls = new ModernCalls(mux, clock);
  const peer = caller('p', { logLevel: 'info' });
  calls.request(peer, call(1), outcome());
  await server.heard(setsLevel);
  calls.gone(peer);
  await settled(caller('p'));
  expect(server.received.filter(isCall)).toEqual([]);
});

test('what a server asked a client that has gone is answered with an error', async () => {
  const { server, mux, clock } = await started(silent);
  const calls = new ModernCalls(mux, clock);
  const peer = caller('p');
  const waiter = outcome();
  calls.request(peer, call(1), waiter);
  await server.heard(isCall);
  server.say('{"jsonrpc":"2.0","id":"q","method":"roots/list"}');
  // It is asked after a moment in which other questions could come.
  await expect.poll(() => clock.waiting).toBeGreaterThan(2);
  calls.gone(peer);
  expect(await server.heard(({ id }) => id === 'q')).toMatchObject({ error: { code: -32603 } });
  clock.pass(60 * 60_000);
  expect(clock.waiting).toBe(0);
});

test('one principal cannot take the places of all', async () => {
  const { server, mux } = await started(silent);
  const taken = Array.from({ length: 1024 }, () => outcome());
  for (const one of taken) mux.request(caller('p'), call(1), one);
  const [late, other] = [outcome(), outcome()];
  mux.request(caller('p'), call(1), late);
  expect(await late.done).toBe('proxy/busy');
  mux.request(caller('q'), call(1, { name: 'other' }), other);
  const asked = await server.heard(({ params }) => params?.['name'] === 'other');
  server.reply(asked, {});
  expect(await other.done).toContain('result');
  const [first] = server.received.filter(isCall);
  server.reply(first ?? {}, {});
  await taken[0]?.done;
  const next = outcome();
  mux.request(caller('p'), call(1, { name: 'next' }), next);
  server.reply(await server.heard(({ params }) => params?.['name'] === 'next'), {});
  expect(await next.done).toContain('result');
});

test('of too many streams the oldest of the principal with most ends', async () => {
  const { mux, clock } = await started();
  const calls = new ModernCalls(mux, clock);
  const listen = request(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
  const open = (key: string): ReturnType<typeof outcome> => {
    const waiter = outcome();
    calls.request(caller(key), listen, waiter);
    return waiter;
  };
  const other = open('q');
  await expect.poll(() => other.before).toHaveLength(1);
  const ended: string[] = [];
  void other.done.then(() => ended.push('q'));
  const first = open('p');
  for (let more = 0; more < 1023; more += 1) open('p');
  expect(JSON.parse(await first.done)).toMatchObject({ id: 1, result: { resultType: 'complete' } });
  expect(ended).toEqual([]);
});
