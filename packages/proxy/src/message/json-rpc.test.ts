import { describe, expect, test } from 'vitest';
import { errorText, findToken, readMessage, resultOf, withId, withToken } from './json-rpc.ts';

const read = (text: string) => {
  const message = readMessage(text);
  if (typeof message === 'string') throw new TypeError(message);
  return message;
};

describe('readMessage', () => {
  test.each([
    ['{"jsonrpc":"2.0","id":1,"method":"a"}', { kind: 'request', id: '1', method: 'a' }],
    ['{"jsonrpc":"2.0","id":"1","method":"a"}', { kind: 'request', id: '"1"' }],
    [
      '{"jsonrpc":"2.0","id":12345678901234567890,"method":"a"}',
      { kind: 'request', id: '12345678901234567890' },
    ],
    ['{"jsonrpc":"2.0","method":"a"}', { kind: 'notification', method: 'a' }],
    ['{"jsonrpc":"2.0","id":1,"result":null}', { kind: 'response', failed: false }],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', { kind: 'response', failed: true }],
    ['{"jsonrpc":"2.0","\\u0069d":2,"method":"a"}', { kind: 'request', id: '2' }],
  ])('reads %s', (text, expected) => {
    expect(readMessage(text)).toMatchObject(expected);
  });

  test.each([
    ['', 'not-json'],
    ['{', 'not-json'],
    ['Server started', 'not-json'],
    ['[]', 'batch'],
    ['null', 'not-json-rpc'],
    ['3', 'not-json-rpc'],
    ['{}', 'not-json-rpc'],
    ['{"jsonrpc":"1.0","id":1,"method":"a"}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":null,"method":"a"}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":{},"method":"a"}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"method":7}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"method":"a","paramſ":{}}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"Error":{},"result":{}}', 'not-json-rpc'],
    ['{"__proto__":{"jsonrpc":"2.0"},"id":1,"method":"a"}', 'not-json-rpc'],
  ])('does not take %s', (text, why) => {
    expect(readMessage(text)).toBe(why);
  });
});

describe('changing a message', () => {
  test('withId touches the id only, twice in a row', () => {
    const message = read('{ "id" : "long id", "big":9007199254740993, "method":"a","jsonrpc":"2.0" }');
    if (message.kind !== 'request') throw new TypeError(message.kind);
    const once = withId(message, '7');
    expect(once.text).toBe('{ "id" : 7, "big":9007199254740993, "method":"a","jsonrpc":"2.0" }');
    expect(withId(once, '"long id"').text).toBe(message.text);
  });

  test('withToken leaves messages without that token alone', () => {
    const message = read('{"jsonrpc":"2.0","method":"a","params":{"progressToken":{"x":1}}}');
    expect(withToken(message, ['params', 'progressToken'], '1')).toBe(message);
  });

  test('a token is found whose name is spelled with escapes that an earlier message has V8 misread', () => {
    const spelling = String.raw`progress\u0054oken`;
    const say = (name: string) =>
      read(`{"jsonrpc":"2.0","method":"a","params":{"_meta":{"a":1,"${name}":7}}}`);
    say(JSON.stringify(spelling.slice(0, 'progressToken'.length)).slice(1, -1));
    const path = ['params', '_meta', 'progressToken'];
    expect(findToken(say(spelling), path)).toBeDefined();
  });

  test('a made result can be put under another id', () => {
    expect(withId(resultOf('"a"', '{"x":1}'), '12').text).toBe('{"jsonrpc":"2.0","id":12,"result":{"x":1}}');
  });

  test('an error without a known id has no id member', () => {
    expect(errorText(undefined, { code: 1, message: 'x' })).toBe(
      '{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}',
    );
  });
});

describe('a large message', () => {
  const ballast = 'x'.repeat(100_000);

  test('is read as a small one is, as far as the proxy acts upon it', () => {
    const members = { _meta: { progressToken: 't' }, name: 'echo', requestId: 7, arguments: { ballast } };
    const read = readMessage(
      JSON.stringify({ jsonrpc: '2.0', id: 'i', method: 'tools/call', params: members }),
    );
    expect(read).toMatchObject({
      kind: 'request',
      id: '"i"',
      method: 'tools/call',
      value: { params: { _meta: { progressToken: 't' }, name: 'echo', requestId: 7 } },
    });
    const result = { task: { taskId: 't1', more: ballast } };
    expect(readMessage(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))).toMatchObject({
      kind: 'response',
      failed: false,
      value: { result: { task: { taskId: 't1' } } },
    });
  });

  test.each([
    ['cut short', `{"jsonrpc":"2.0","id":1,"result":"${ballast}`, 'not-json'],
    ['an array', `[{"a":"${ballast}"}]`, 'batch'],
    [
      'with two methods',
      `{"jsonrpc":"2.0","id":1,"method":"x","METHOD":"y","params":"${ballast}"}`,
      'not-json-rpc',
    ],
    ['no object', `"${ballast}"`, 'not-json-rpc'],
    [
      'with a doubled token',
      `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"${ballast}","_meta":{"progressToken":1,"progressToken":2},"_meta":{}}}`,
      'not-json-rpc',
    ],
    ['with an id of its size', `{"jsonrpc":"2.0","id":"${ballast}","method":"x"}`, 'not-json-rpc'],
    [
      'nested beyond reason',
      `{"jsonrpc":"2.0","id":1,"method":"x","params":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
      'too-deep',
    ],
  ])('%s is refused', (_name, text, why) => expect(readMessage(text)).toBe(why));

  test('of millions of values is read without making them', () => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[${'[],'.repeat(2_700_000)}1]}}`;
    const before = process.memoryUsage().heapUsed;
    expect(readMessage(text)).toMatchObject({ kind: 'request', id: '1' });
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(40 * 1024 * 1024);
  });
});

test('a small message nested beyond reason is refused as well', () => {
  const nested = (depth: number): string =>
    `{"jsonrpc":"2.0","id":1,"method":"x","params":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  expect(readMessage(nested(999))).toMatchObject({ kind: 'request' });
  expect(readMessage(nested(1_001))).toBe('too-deep');
});

test('a method name beyond reason is none, so that nobody keeps it', () => {
  const named = (length: number) => readMessage(`{"jsonrpc":"2.0","id":1,"method":"${'m'.repeat(length)}"}`);
  expect(named(1024)).toMatchObject({ kind: 'request' });
  expect(named(1025)).toBe('not-json-rpc');
});
