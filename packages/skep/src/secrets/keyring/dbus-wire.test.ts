import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeMessage,
  encodeCall,
  marshal,
  MEMBER,
  PATH,
  typesOf,
  unmarshal,
  type Value,
} from './dbus-wire.ts';

const text = fc.string({ unit: 'grapheme' }).map((one) => one.replaceAll('\0', ''));
const leaf: fc.Arbitrary<[string, Value]> = fc.oneof(
  fc.nat(255).map((value): [string, Value] => ['y', value]),
  fc.boolean().map((value): [string, Value] => ['b', value]),
  fc.nat().map((value): [string, Value] => ['u', value]),
  fc.integer().map((value): [string, Value] => ['i', value]),
  text.map((value): [string, Value] => ['s', value]),
  fc.uint8Array().map((value): [string, Value] => ['ay', value]),
  fc.array(text).map((value): [string, Value] => ['as', value]),
  fc.array(fc.tuple(text, text)).map((value): [string, Value] => ['a{ss}', value]),
);
const { typed } = fc.letrec<{ typed: [string, Value] }>((tie) => ({
  typed: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    leaf,
    tie('typed').map(([signature, value]): [string, Value] => ['v', { signature, value }]),
    fc
      .array(tie('typed'), { minLength: 1, maxLength: 4 })
      .map((all): [string, Value] => [`(${all.map(([one]) => one).join('')})`, all.map(([, one]) => one)]),
  ),
}));

test('what is marshalled is read again as it was', () => {
  fc.assert(
    fc.property(fc.array(typed, { maxLength: 5 }), (all) => {
      const signature = all.map(([one]) => one).join('');
      const values = all.map(([, one]) => one);
      expect(unmarshal(signature, marshal(signature, values))).toEqual(values);
    }),
  );
});

test('a structure stands at a multiple of eight', () => {
  expect(marshal('y(y)', [1, [2]])).toEqual(Buffer.of(1, 0, 0, 0, 0, 0, 0, 0, 2));
});

test('numbers of the other byte order are read too', () => {
  expect(unmarshal('us', Buffer.from([0, 0, 1, 2, 0, 0, 0, 1, 97, 0]), true)).toEqual([258, 'a']);
});

describe('bytes of a bus that means no good', () => {
  test('are refused, or read, and never anything else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), typed, (bytes, [signature]) => {
        try {
          unmarshal(signature, Buffer.from(bytes));
        } catch (error) {
          expect(error).toMatchObject({ code: 'secrets/keyring' });
        }
      }),
    );
  });
  test.each(['a'.repeat(100), '(', '(s', 'z', '{', ')', 'a()', 'a{}'])(
    'the signature %s is refused',
    (signature) => {
      expect(() => typesOf(signature)).toThrow(expect.objectContaining({ code: 'secrets/keyring' }));
    },
  );
  test('a message that claims to be longer than any answer is refused before it has come', () => {
    const bytes = encodeCall(1, new Map([[PATH, '/']]), '', []);
    bytes.writeUInt32LE(0xff_ff_ff_ff, 4);
    expect(() => decodeMessage(bytes)).toThrow('too long');
  });
});

test('a message is read once all of it is there', () => {
  const bytes = encodeCall(7, new Map([[MEMBER, 'Hello']]), 's', ['x']);
  for (let length = 0; length < bytes.length; length += 1) {
    expect(decodeMessage(bytes.subarray(0, length))).toBeUndefined();
  }
  const decoded = decodeMessage(Buffer.concat([bytes, Buffer.from('more')]));
  expect(decoded).toMatchObject({ length: bytes.length, message: { serial: 7 } });
  expect(decoded?.message.fields.get(MEMBER)).toBe('Hello');
});
