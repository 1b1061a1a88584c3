import type { IncomingHttpHeaders } from 'node:http';
import { PassThrough } from 'node:stream';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Response } from '../../message/json-rpc.ts';
import { readAlong } from './answer-reader.ts';

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };
const STREAM = { 'content-type': 'text/event-stream' };

/** What is heard of an answer that comes in these pieces. */
async function heard(
  headers: IncomingHttpHeaders,
  pieces: readonly Uint8Array[],
): Promise<readonly Response[]> {
  const reply = new PassThrough();
  const answers: Response[] = [];
  readAlong(reply, headers, (answer) => void answers.push(answer));
  reply.resume();
  for (const piece of pieces) reply.write(piece);
  reply.end();
  await new Promise((resolve) => reply.once('close', resolve));
  return answers;
}

const bytes = (text: string): Uint8Array => Buffer.from(text);
const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"né"}}';
const events = `event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\r\n\r\n: hi\n\ndata: ${error}\n\ndata: ${error}\n\n`;

describe('an answer that is relayed', () => {
  test.each([
    ['JSON', JSON_TYPE, error],
    ['events', STREAM, events],
  ])('is heard once, in whatever pieces it comes: %s', async (_name, headers, text) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: text.length })), async (cuts) => {
        const whole = bytes(text);
        const at = [0, ...cuts.toSorted((a, b) => a - b), whole.length];
        const pieces = at.slice(1).map((end, index) => whole.subarray(at[index], end));
        const answers = await heard(headers, pieces);
        expect(answers).toMatchObject([{ failed: true, value: { error: { code: -32000, message: 'né' } } }]);
      }),
      { numRuns: 50 },
    );
  });

  test('is what it says, whatever that is', async () => {
    const result = fc.oneof(fc.jsonValue(), fc.record({ isError: fc.boolean(), content: fc.jsonValue() }));
    const failure = fc.record({ code: fc.integer(), message: fc.string() });
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.record({ result }), fc.record({ error: failure })), async (said) => {
        const value: unknown = JSON.parse(JSON.stringify({ jsonrpc: '2.0', id: 1, ...said }));
        const [answer] = await heard(JSON_TYPE, [bytes(JSON.stringify(value))]);
        expect([answer?.failed, answer?.value]).toEqual(['error' in said, value]);
      }),
    );
  });

  test.each([
    ['packed', { ...JSON_TYPE, 'content-encoding': 'gzip' }, error],
    ['of another type', { 'content-type': 'text/html' }, error],
    ['no JSON', JSON_TYPE, '{"error"'],
    ['a batch', JSON_TYPE, `[${error}]`],
    ['a batch of results', JSON_TYPE, '[{"jsonrpc":"2.0","id":1,"result":{}}]'],
    ['cut off', JSON_TYPE, '{"jsonrpc":"2.0","id":1,"result":{"a":'],
    ['cut off behind a brace', JSON_TYPE, '{"jsonrpc":"2.0","id":1,"result":{"a":{}}'],
    ['followed by more', JSON_TYPE, '{"jsonrpc":"2.0","id":1,"result":{}}}'],
    ['of a result that is nobody’s', JSON_TYPE, '{"x":{"result":1}}'],
    ['of no response', JSON_TYPE, '{"jsonrpc":"2.0","method":"x"}'],
    ['behind an event that is too large', STREAM, `data: ${'x'.repeat(100_000)}\n\ndata: ${error}\n\n`],
    ['in an event without an end', STREAM, `data: ${error}`],
  ])('is not heard where it is %s', async (_name, headers, text) => {
    const whole = bytes(text);
    const pieces = Array.from({ length: Math.ceil(whole.length / 1_000) }, (_, at) =>
      whole.subarray(at * 1_000, (at + 1) * 1_000),
    );
    expect(await heard(headers, pieces)).toEqual([]);
  });

  test('of more than is looked at is known to be an error, or none', async () => {
    const long = 'x'.repeat(100_000);
    const failed = await heard(JSON_TYPE, [
      bytes(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"${long}"}}`),
    ]);
    expect(failed).toMatchObject([{ failed: true }]);
    const fine = await heard(JSON_TYPE, [bytes(`{"jsonrpc":"2.0","id":1,"result":{"error":"${long}"}}`)]);
    expect(fine).toMatchObject([{ failed: false }]);
  });

  test.each([
    ['a name that is no string', `{"\\q":1,"result":"${'x'.repeat(100_000)}"}`],
    [
      'a name that is cut off in an escape',
      `{"jsonrpc":"2.0","${'\\u00e9'.repeat(40)}x`.padEnd(70_000, '\\u00e9'),
    ],
    ['no end of a string', `{"result\\${'"'.repeat(70_000)}`],
  ])('of more than is looked at fails nothing where it is no JSON: %s', async (_name, text) => {
    expect(await heard(JSON_TYPE, [bytes(text)])).toEqual([]);
  });
});
