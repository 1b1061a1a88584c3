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

test.each([
  ['tools/call', '{"name":"x"}', 'tool'],
  ['prompts/get', '{"name":"x"}', 'prompt'],
  ['resources/read', '{"uri":"x"}', 'resource'],
  ['resources/subscribe', '{"uri":"x"}', 'resource'],
  ['resources/unsubscribe', '{"uri":"x"}', 'resource'],
  ['completion/complete', '{"ref":{"type":"ref/prompt","name":"x"}}', 'prompt'],
  ['completion/complete', '{"ref":{"type":"ref/resource","uri":"x"}}', 'resource'],
])('%s %s needs an answer about a %s', (method, params, kind) => {
  expect(needOf(sent(method, params))).toMatchObject({ kind: 'answer', question: { kind, id: 'x' } });
});

test.each([
  'initialize',
  'ping',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'tasks/list',
  'features/list',
  'roots/list',
  'server/discover',
  'logging/setLevel',
  'notifications/initialized',
  'notifications/progress',
  'notifications/cancelled',
  'notifications/message',
  'notifications/tasks/status',
  'notifications/roots/list_changed',
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
])('%s needs nothing', (method) => {
  expect(needOf(sent(method, '{}'))).toEqual({ kind: 'nothing' });
});

test.each(['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update'])('%s needs its task', (method) => {
  expect(needOf(sent(method, '{"taskId":"t"}'))).toEqual({ kind: 'task', taskId: 't' });
  expect(needOf(sent(method, '{}'))).toEqual({ kind: 'refusal' });
});

test.each(['elicitation/create', 'sampling/createMessage', 'tasks/x', 'Tools/List', 'notifications/x', ''])(
  '"%s" is refused',
  (method) => {
    expect(needOf(sent(method, '{"name":"x"}'))).toEqual({ kind: 'refusal' });
  },
);
