import { describe, expect, test } from 'vitest';
import { errorText, readMessage, resultOf, withId, withToken } from './json-rpc.ts';

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

  test('a made result can be put under another id', () => {
    expect(withId(resultOf('"a"', '{"x":1}'), '12').text).toBe('{"jsonrpc":"2.0","id":12,"result":{"x":1}}');
  });

  test('an error without a known id has no id member', () => {
    expect(errorText(undefined, { code: 1, message: 'x' })).toBe(
      '{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}',
    );
  });
});
