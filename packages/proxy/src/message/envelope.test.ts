import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isEnveloped, META, withEnvelope, withMember, withoutEnvelope } from './envelope.ts';
import { readMessage, type Request } from './json-rpc.ts';

const ENVELOPE = { [META.capabilities]: { roots: {} }, [META.clientInfo]: { name: 'x' } };

function read(text: string): Request {
  const message = readMessage(text);
  if (typeof message === 'string' || message.kind !== 'request') throw new TypeError(text);
  return message;
}

const members = fc.dictionary(fc.string(), fc.jsonValue());
const messages = fc
  .record({
    params: fc.option(fc.tuple(members, fc.option(members))),
    id: fc.oneof(fc.string(), fc.integer()),
  })
  .map(({ params, id }) => {
    const [given, _meta] = params ?? [undefined, undefined];
    const all = _meta ? { ...given, _meta } : given;
    return { jsonrpc: '2.0', method: 'x/y', id, ...(all && { params: all }) };
  });

test('an envelope that is put on and taken off leaves what a request said', () => {
  fc.assert(
    fc.property(messages, (said) => {
      const before = read(JSON.stringify(said));
      const modern = read(withEnvelope(before, ENVELOPE).text);
      expect(isEnveloped(modern)).toBe(true);
      expect(modern.id).toBe(before.id);
      const { params, ...rest } = JSON.parse(withoutEnvelope(modern).text);
      const { params: own = {}, ...others } = JSON.parse(before.text);
      expect(rest).toEqual(others);
      expect({ _meta: {}, ...params }).toEqual({ _meta: {}, ...withoutRetry(own) });
    }),
  );
});

function withoutRetry(params: object): object {
  return Object.fromEntries(
    Object.entries(params).filter(([name]) => name !== 'inputResponses' && name !== 'requestState'),
  );
}

test('numbers stay as they are written, and a client cannot speak for the proxy', () => {
  const text = `{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":12345678901234567890,"_meta":{"${META.capabilities}":{"all":{}},"own":1.50}}}`;
  const modern = withEnvelope(read(text), ENVELOPE);
  expect(modern.text).toContain('"n":12345678901234567890');
  expect(modern.text).toContain('"own":1.50');
  expect(JSON.parse(modern.text).params._meta[META.capabilities]).toEqual({ roots: {} });
  expect(modern.text.match(/clientCapabilities/gu)).toHaveLength(1);
});

test('of `_meta` that is written twice one stays, the last, and says nothing for the proxy', () => {
  const claimed = `{"${META.capabilities}":{"all":{}},"own":1}`;
  const text = `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":${claimed},"n":1.50,"_meta":${claimed.replace('1', '2')}}}`;
  const modern = withEnvelope(read(text), ENVELOPE).text;
  expect(modern.match(/_meta|clientCapabilities/gu)).toHaveLength(2);
  expect(JSON.parse(modern).params._meta).toMatchObject({ own: 2, [META.capabilities]: { roots: {} } });
  expect(modern).toContain('"n":1.50');
  const legacy = withoutEnvelope(read(text)).text;
  expect(JSON.parse(legacy).params).toEqual({ n: 1.5, _meta: { own: 2 } });
  expect(legacy.match(/_meta/gu)).toHaveLength(1);
});

test('a member is put first into any object, and into nothing else', () => {
  expect(withMember('{"a":{ }}', ['a'], '"b":1')).toBe('{"a":{"b":1 }}');
  expect(withMember('{"a":{"c":2}}', ['a'], '"b":1')).toBe('{"a":{"b":1,"c":2}}');
  expect(withMember('{"a":[]}', ['a'], '"b":1')).toBe('{"a":[]}');
});

test('all that an envelope says twice goes with it, and what else a request says twice stays', () => {
  const level = `"${META.logLevel}":"a"`;
  const text = `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a" : 1,"requestState":"s","a":2,"_meta":{${level}, ${level} ,"b":[1],${level}},"inputResponses":{}, "requestState":""}}`;
  expect(withoutEnvelope(read(text)).text).toBe(
    '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a" : 1,"a":2,"_meta":{"b":[1]}}}',
  );
});
