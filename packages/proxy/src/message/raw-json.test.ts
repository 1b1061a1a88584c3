import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { findElements, findMembers, findPath, onOneLine, rawAt, splice } from './raw-json.ts';

const names = fc.constantFrom('id', 'method', 'params', '_meta', 'a"b', 'c\\', 'é', '__proto__', '');
const documents = fc.dictionary(names, fc.jsonValue({ maxDepth: 4 }));

/** The same value written differently: white space between tokens, escapes in names. */
const spaced = (value: unknown): string => JSON.stringify(value, null, '\t ');
const escaped = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/[^\u0020-\u007e]|id/gu, (found) =>
    Array.from({ length: found.length }, (_, at) => found.charCodeAt(at).toString(16).padStart(4, '0'))
      .map((hex) => `\\u${hex}`)
      .join(''),
  );

describe('findMembers', () => {
  test.each([
    ['compact', JSON.stringify],
    ['indented', spaced],
    ['escaped', escaped],
  ])('finds what JSON.parse finds in %s text', (_form, write) => {
    fc.assert(
      fc.property(documents, (document) => {
        const text = write(document);
        const parsed = JSON.parse(text);
        const found = findMembers(text, 0, new Set(Object.keys(parsed)));
        const read = Object.fromEntries(
          [...(found ?? [])].map(([name, span]) => [name, JSON.parse(rawAt(text, span))]),
        );
        expect(Object.keys(read).sort()).toEqual(Object.keys(parsed).sort());
        for (const name of Object.keys(read)) expect(read[name]).toEqual(parsed[name]);
      }),
    );
  });

  test.each(['{"id":1,"id":2}', '{"id":1,"\\u0069d":2}', '{"id":{"id":1},"x":[1],"id":"a"}'])(
    'refuses a doubled member: %s',
    (text) => {
      expect(findMembers(text, 0, new Set(['id']))).toBeUndefined();
    },
  );

  test('makes nothing of an escaped name that is too long to be looked for', () => {
    const text = `{"${'\\u0069'.repeat(1_000)}":1,"\\u0069d":2}`;
    const parse = vi.spyOn(JSON, 'parse');
    try {
      expect(findMembers(text, 0, new Set(['id']))?.size).toBe(1);
      expect(parse).toHaveBeenCalledTimes(1);
    } finally {
      parse.mockRestore();
    }
  });

  test('looks at the outer object only', () => {
    const text = '{"a":{"id":1},"b":"{\\"id\\":2}","c":[{"id":3}]}';
    expect(findMembers(text, 0, new Set(['id']))?.size).toBe(0);
  });
});

describe('splice', () => {
  test('changes the value at the path and no other character', () => {
    fc.assert(
      fc.property(documents, fc.jsonValue(), (document, value) => {
        const text = spaced({ before: 1e21, ...document, target: { x: document, y: 12 }, after: 'z' });
        const span = findPath(text, ['target', 'y']);
        expect(span).toBeDefined();
        if (span === undefined) return;
        const changed = splice(text, [{ span, text: JSON.stringify(value) }]);
        expect(changed.startsWith(text.slice(0, span.start))).toBe(true);
        expect(changed.endsWith(text.slice(span.end))).toBe(true);
        expect(JSON.parse(changed).target.y).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('keeps numbers beyond 2^53, member order and duplicates elsewhere', () => {
    const text = '{"z":12345678901234567890,"id":7,"a":1.0,"a":1e400}';
    const span = findPath(text, ['id']);
    expect(span && splice(text, [{ span, text: '"x"' }])).toBe(
      '{"z":12345678901234567890,"id":"x","a":1.0,"a":1e400}',
    );
  });
});

test('onOneLine keeps the value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = spaced(value).replaceAll('\n', '\r\n');
      expect(onOneLine(text)).not.toMatch(/[\r\n]/u);
      expect(JSON.parse(onOneLine(text))).toEqual(JSON.parse(text));
    }),
  );
});

test('costs by the length of a text, not by the line breaks in it', () => {
  const length = 2 * 1024 * 1024;
  const shortest = (text: string): number =>
    Math.min(
      ...Array.from({ length: 3 }, () => {
        const since = performance.now();
        onOneLine(text);
        return performance.now() - since;
      }),
    );
  for (const white of ['\n', '\r'])
    expect(shortest(white.repeat(length))).toBeLessThan(8 * shortest(white.padEnd(length)));
});

test('finds the elements of any array as they were written', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 2, '\t'), (values, indent) => {
      const text = JSON.stringify(values, null, indent);
      const found = findElements(text, 100).map((span) => JSON.parse(rawAt(text, span)));
      expect(found).toEqual(JSON.parse(text));
    }),
  );
  expect([findElements('{"a":[1]}', 9), findElements('[ ]', 9)]).toEqual([[], []]);
});
