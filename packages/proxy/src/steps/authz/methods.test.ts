import { expect, test } from 'vitest';
import { readMessage } from '../../message/json-rpc.ts';
import { listeningTo, needOf, type Sent } from './methods.ts';

function sent(method: string, params: string): Sent {
  const message = readMessage(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`);
  if (typeof message === 'string' || message.kind === 'response') throw new TypeError(params);
  return message;
}
const listen = (notifications: string): Sent =>
  sent('subscriptions/listen', `{"notifications":${notifications}}`);

test('whoever listens needs what it listens to', () => {
  const heard = listen('{"x":1e2,"resourceSubscriptions":["a","b"]}');
  expect(needOf(heard)).toEqual({ kind: 'listen', uris: ['a', 'b'] });
  expect(listeningTo(heard, ['b'])?.text).toBe(heard.text.replace('["a","b"]', '["b"]'));
  expect(needOf(listen('{"toolsListChanged":true}'))).toEqual({ kind: 'nothing' });
});

test.each([
  '{"resourceSubscriptions":"a"}',
  '{"resourceSubscriptions":[1]}',
  '{"resourceSubscriptions":["a"],"resourceSubscriptions":["b"]}',
])('a list that is none, or two, is refused: %s', (notifications) => {
  expect(needOf(listen(notifications))).toEqual({ kind: 'refusal' });
});

test('two filters are refused too', () => {
  const two = sent(
    'subscriptions/listen',
    '{"notifications":{"resourceSubscriptions":["a"]},"notifications":{}}',
  );
  const hidden = sent(
    'subscriptions/listen',
    '{"notifications":{},"notifications":{"resourceSubscriptions":["a"]}}',
  );
  for (const one of [two, hidden]) expect(needOf(one)).toEqual({ kind: 'refusal' });
});

test('a call needs what it names, with the arguments as they are written', () => {
  expect(needOf(sent('tools/call', '{"arguments":{"n":1.0},"name":"\\u0061"}'))).toEqual({
    kind: 'answer',
    question: { kind: 'tool', id: 'a', args: '{"n":1.0}' },
  });
});

test.each([
  ['tools/call', '{"name":"a","Name":"b"}'],
  ['tools/call', '{"name":"a","argumentſ":{}}'],
  ['resources/read', '{"uri":"a","URI":"b"}'],
  ['completion/complete', '{"ref":{"type":"ref/prompt","name":"a","Name":"b"}}'],
])('a name that servers may take for another is refused: %s %s', (method, params) => {
  expect(needOf(sent(method, params))).toEqual({ kind: 'refusal' });
});

test('nobody listens to more than a thousand resources at once', () => {
  const uris = (count: number): Sent =>
    listen(JSON.stringify({ resourceSubscriptions: Array.from({ length: count }, (_, at) => `x:${at}`) }));
  expect([1_000, 1_001].map((count) => needOf(uris(count)).kind)).toEqual(['listen', 'refusal']);
});
