import { describe, expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { DISCOVERED } from '../../doubles/modern.ts';
import type { Received } from '../../doubles/scripted-server.ts';
import { call, Client, notice, request, result } from '../../doubles/started-mux.ts';
import { META } from '../../message/envelope.ts';
import { LegacySide } from './legacy-side.ts';

interface Met {
  readonly side: LegacySide;
  readonly clock: ReturnType<typeof manualClock>;
  /** What the server and the mux got, as text and parsed. */
  readonly lines: string[];
  readonly sent: (method: string) => readonly Received[];
  readonly heard: Received[];
  readonly ask: (id: unknown, method: string, params?: object) => boolean;
  /** Whether the server takes messages. */
  takes: boolean;
}

/** A server that has said that it is modern, and what stands before it. */
function met(): Met {
  const clock = manualClock();
  const lines: string[] = [];
  const heard: Received[] = [];
  const side = new LegacySide({
    clock,
    skepVersion: '1',
    events: { onLine: (line) => void heard.push(JSON.parse(line)) },
    write(line) {
      if (all.takes) lines.push(line);
      return all.takes;
    },
  });
  const sent = (method: string): readonly Received[] =>
    lines.map((line): Received => JSON.parse(line)).filter((one) => one.method === method);
  const peer = new Client('a');
  const ask: Met['ask'] = (id, method, params) => side.write(request(id, method, params).text, peer);
  const all: Met = { side, clock, lines, sent, heard, ask, takes: true };
  ask(0, 'initialize');
  side.take(result(0, DISCOVERED).text);
  return all;
}

const CANCELLED = 'notifications/cancelled';
const LISTEN = 'subscriptions/listen';
const question = { method: 'elicitation/create', params: { message: 'who?' } };
const required = (inputRequests?: unknown): string =>
  result(7, { resultType: 'input_required', inputRequests, requestState: 's' }).text;

describe('a call that waits for its client', () => {
  test.each([
    ['an answer', { who: question }],
    ['its next turn', {}],
  ])('and is cancelled before %s ends here, for the server knows it no more', (_what, asked) => {
    const { side, lines, sent, heard, clock } = met();
    side.write(call(7).text, new Client('a'));
    side.take(required(asked));
    expect(side.write(notice(CANCELLED, { requestId: 7 }).text)).toBe(true);
    expect(lines.every((line) => typeof JSON.parse(line) === 'object')).toBe(true);
    expect(sent(CANCELLED)).toEqual([]);
    for (const { id } of heard.filter(({ method }) => method === question.method))
      side.write(result(id, {}).text);
    clock.pass(60_000);
    expect(sent('tools/call')).toHaveLength(1);
  });

  test('brings what it was asked for as it was written', () => {
    const { side, lines, heard } = met();
    side.write(call(7, { name: 'a' }).text, new Client('a'));
    side.take(
      '{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","requestState":"\\u0073","inputRequests":{"w\\u0068o":{"method":"elicitation/create","params":{"n":12345678901234567890}},"roots":{"method":"roots/list"}}}}',
    );
    const asked = heard.slice(-2);
    expect(asked).toMatchObject([{ method: 'elicitation/create' }, { method: 'roots/list', params: {} }]);
    for (const { id } of asked)
      side.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"n":1.50}}`);
    expect(lines.at(-1)).toContain('"inputResponses":{"who":{"n":1.50},"roots":{"n":1.50}}');
    expect(JSON.parse(lines.at(-1) ?? '').params).toMatchObject({ requestState: 's', name: 'a' });
  });

  test('fails where it is asked for what is no question, or for too much', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`q${n}`, question]));
    for (const asked of [{ who: question, none: 7 }, { who: { params: {} } }, many]) {
      const { side, heard } = met();
      side.write(call(7).text, new Client('a'));
      side.take(required(asked));
      expect(heard.slice(1)).toMatchObject([{ id: 7, error: { code: -32603 } }]);
    }
  });
});

test('a level that is none is refused, and a server that was started anew is told of no level', () => {
  const { side, ask, sent, heard } = met();
  const levelOf = (): unknown => Object(sent('tools/list').at(-1)?.params?.['_meta'])[META.logLevel];
  for (const level of ['bogus', 7, undefined, { toString: 1 }]) ask(1, 'logging/setLevel', { level });
  expect(heard.slice(1).map(({ error }) => Object(error).code)).toEqual([-32602, -32602, -32602, -32602]);
  ask(2, 'tools/list');
  expect(levelOf()).toBeUndefined();
  ask(3, 'logging/setLevel', { level: 'error' });
  ask(4, 'tools/list');
  expect(levelOf()).toBe('error');
  side.close();
  ask(5, 'tools/list');
  expect(levelOf()).toBeUndefined();
  side.write(notice('notifications/initialized').text);
  expect(sent(LISTEN)).toEqual([]);
});

describe('what is listened to', () => {
  const subscribed = (all: Met): unknown =>
    Object(all.sent(LISTEN).at(-1)?.params?.['notifications']).resourceSubscriptions;

  test('goes on being so while the server takes nothing, and is asked for again', () => {
    const all = met();
    all.side.write(notice('notifications/initialized').text);
    const [first] = all.sent(LISTEN);
    all.takes = false;
    all.ask(1, 'resources/subscribe', { uri: 'a:b' });
    all.takes = true;
    expect(all.sent(CANCELLED)).toEqual([]);
    const change = { _meta: { [META.subscriptionId]: first?.id } };
    all.side.take(notice('notifications/tools/list_changed', change).text);
    expect(all.heard.at(-1)).toMatchObject({ method: 'notifications/tools/list_changed' });
    all.clock.pass(5_000);
    expect(subscribed(all)).toEqual(['a:b']);
    expect(all.sent(CANCELLED)).toMatchObject([{ params: { requestId: first?.id } }]);
    all.clock.pass(60_000);
    expect(all.sent(LISTEN)).toHaveLength(2);
  });

  test('is asked for again when its stream ends', () => {
    const all = met();
    all.side.write(notice('notifications/initialized').text);
    all.side.take(result(all.sent(LISTEN)[0]?.id).text);
    all.clock.pass(60_000);
    expect(all.sent(LISTEN)).toHaveLength(2);
    expect(all.sent(CANCELLED)).toEqual([]);
  });

  test('has an end: more addresses than one request should have are not taken', () => {
    const all = met();
    const uri = (n: number): string => `a:${n}${'x'.repeat(60_000)}`;
    const taken = Array.from({ length: 20 }, (_, n) =>
      all.ask(n + 1, 'resources/subscribe', { uri: uri(n) }),
    );
    expect(taken.slice(0, 10)).not.toContain(false);
    expect(taken.at(-1)).toBe(false);
    expect(JSON.stringify(subscribed(all)).length).toBeLessThan(1024 * 1024 + 1024);
    all.ask(300, 'resources/unsubscribe', { uri: uri(0) });
    expect(all.ask(301, 'resources/subscribe', { uri: uri(300) })).toBe(true);
  });
});
