import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeCursor, encodeCursor } from './entry-key.ts';

const names = fc.stringMatching(/^[a-z0-9][a-z0-9.-]{0,20}\/[a-z0-9][a-z0-9._-]{0,20}$/);
const versions = fc.string({ unit: 'grapheme', minLength: 1 });

describe('cursor', () => {
  test('comes back as the position it was made from, in both base64 alphabets', () => {
    fc.assert(
      fc.property(names, versions, (name, version) => {
        const position = { name, version };
        expect(decodeCursor(encodeCursor(position))).toEqual(position);
        const standard = Buffer.from(`${name},${version}`).toString('base64');
        expect(decodeCursor(standard)).toEqual(position);
        expect(decodeCursor(standard.replaceAll('+', ' '))).toEqual(position);
      }),
    );
  });

  test('needs no escaping in a URL', () => {
    fc.assert(
      fc.property(names, versions, (name, version) => {
        expect(encodeCursor({ name, version })).toMatch(/^[A-Za-z0-9_-]+$/);
      }),
    );
  });

  test.each(['!', 'YQ', ',', '%%%', 'a'.repeat(5000), Buffer.from(',1.0.0').toString('base64url'), '_w=='])(
    'refuses "%s" as a bad request',
    (text) => {
      expect(() => decodeCursor(text)).toThrow(expect.objectContaining({ code: 'registry/bad-request' }));
    },
  );
});
