import { describe, expect, test } from 'vitest';
import { readMessage } from './json-rpc.ts';
import { hasLookalikes } from './lookalikes.ts';

function has(params: string): boolean {
  const message = readMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
  if (typeof message === 'string') throw new TypeError(message);
  return hasLookalikes(message);
}

describe.each([
  ['small', ''],
  ['large', `"ballast":"${'x'.repeat(100_000)}",`],
])('in a %s message', (_size, more) => {
  test.each([
    '"name":"a","Name":"b"',
    '"Name":"b"',
    '"name":"a","n\\u0041me":"b"',
    '"uri":"a","URI":"b"',
    '"argument\u017f":{}',
    '"ta\u017f\u212aId":"b"',
    '"_META":{}',
    '"_meta":{"ProgressToken":1}',
    '"_meta":{"io.modelcontextprotocol/ProtocolVersion":"x"}',
    '"ref":{"type":"ref/prompt","name":"a","NAME":"b"}',
    '"notifications":{"ResourceSubscriptions":["a"]}',
  ])('a name that is read as another is found: %s', (params) => {
    expect(has(`{${more}${params}}`)).toBe(true);
  });

  test.each([
    '"name":"a","arguments":{"Name":1,"URI":2}',
    '"names":"a","\u00fcri":1,"Xname":2',
    '"_meta":{"Name":1,"progressToken":2}',
  ])('others are not: %s', (params) => {
    expect(has(`{${more}${params}}`)).toBe(false);
  });
});

test('answers of clients are theirs', () => {
  const answer = readMessage('{"jsonrpc":"2.0","id":1,"result":{"Name":1,"params":{"Name":1}}}');
  if (typeof answer === 'string') throw new TypeError(answer);
  expect(hasLookalikes(answer)).toBe(false);
});
