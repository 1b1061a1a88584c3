import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { anyText } from './any-text.fixture.ts';
import {
  allMembers,
  compactText,
  cutMembers,
  findElements,
  findMembers,
  findPath,
  isDeeperThan,
  isWhole,
  memberSlice,
  onOneLine,
  rawAt,
  repeatedMember,
  splice,
  withPlainNames,
} from './scan.ts';

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
  test.each(['Task', 'TASK', 'ta\u017fk', 'ta\\u017fk', 'tas\u212a', 'tas\\u212A'])(
    'exact: refuses %s, which is read as task where nobody heeds case',
    (name) => {
      const text = `{"task":1,"${name}":2}`;
      expect(findMembers(text, 0, new Set(['task', 'x']), 'exact')).toBeUndefined();
      expect(findMembers(`{"${name}":2}`, 0, new Set(['task']), 'exact')).toBeUndefined();
      expect(findMembers(text, 0, new Set(['task']))?.size).toBe(1);
    },
  );

  test('exact: takes names that are others', () => {
    const text = '{"tasks":1,"tas\u00e7":2,"task":3,"Tas":{"Task":4}}';
    expect(findMembers(text, 0, new Set(['task']), 'exact')?.size).toBe(1);
  });

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
    expect(shortest(white.repeat(length))).toBeLessThan(40 * shortest(white.padEnd(length)));
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

/** Any JSON value, written with and without white space. */
const anyJson = fc
  .jsonValue()
  .chain((value) =>
    fc.constantFrom(undefined, 1, '\t\r\n').map((indent) => JSON.stringify(value, null, indent)),
  );

const elements = (text: string): string[] => findElements(text).map((span) => rawAt(text, span));

describe('elements', () => {
  test('cuts every element with its exact text', () => {
    expect(elements(' [1.0, {"b":1,"a":[ ]} ,"],\\"", 1e400,null]')).toEqual([
      '1.0',
      '{"b":1,"a":[ ]}',
      '"],\\""',
      '1e400',
      'null',
    ]);
    expect(elements('[ ]')).toEqual([]);
    expect(elements('{}')).toEqual([]);
  });

  test('agrees with JSON.parse for any array', () => {
    fc.assert(
      fc.property(fc.array(anyJson), (texts) => {
        expect(elements(`[ ${texts.join(' ,\n')} ]`)).toEqual(texts);
      }),
    );
  });
});

describe('memberSlice', () => {
  test('follows a path and takes the last of equal members, as JSON.parse does', () => {
    const text = '{"a": 1, "d\\u0061ta": {"x": []}, "data" : { "x" :[ 2 ] } }';
    expect(memberSlice(text, ['data', 'x'])).toBe('[ 2 ]');
    expect(memberSlice(text, [])).toBe(text);
    expect(memberSlice(text, ['a', 'x'])).toBeUndefined();
    expect(memberSlice(text, ['missing'])).toBeUndefined();
  });

  test('agrees with JSON.parse for any object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), anyJson), fc.string(), (members, other) => {
        const text = `{${Object.entries(members)
          .map(([key, value]) => `${JSON.stringify(key)} : ${value}`)
          .join(', ')}}`;
        for (const key of [...Object.keys(members), other]) {
          expect(memberSlice(text, [key])).toBe(Object.hasOwn(members, key) ? members[key] : undefined);
        }
      }),
    );
  });
});

test.each([
  ['{"a":{}}', true],
  [' [{"a":"}]"}] \n', true],
  ['{"a":{}', false],
  ['{"a":{}}}', false],
  ['{"a":{}} 1', false],
  ['{"a":"}', false],
  ['}', false],
  ['"a"', false],
  ['', false],
])('isWhole of %j is %j', (text, whole) => {
  expect(isWhole(text)).toBe(whole);
});

test('isDeeperThan counts open brackets outside strings', () => {
  expect(isDeeperThan(3, '[{"a[[[":[]}]')).toBe(false);
  expect(isDeeperThan(2, '[{"a[[[":[]}]')).toBe(true);
});

describe('compactText', () => {
  test('drops white space between tokens only', () => {
    expect(compactText(' { "a b" : [ 1.50 , "\\" x " ] }\n')).toEqual({
      json: '{"a b":[1.50,"\\" x "]}',
      members: 1,
    });
  });

  test('makes what JSON.stringify makes, for any value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(compactText(JSON.stringify(value, null, 2)).json).toBe(JSON.stringify(value));
      }),
    );
  });
});

test.each([
  ['{"a":1,"b":{"a":2}}', undefined],
  ['[{"a":1},{"a":1}]', undefined],
  ['{"a":"a","b":["a","a"]}', undefined],
  ['{"a":1,"b":{"c":1,"c":2}}', 'c'],
  ['{"x":[{}],"\\u0078":2}', 'x'],
  ['{"__proto__":1,"__proto__":2}', '__proto__'],
])('repeatedMember of %s is %s', (text, name) => {
  expect(repeatedMember(text)).toBe(name);
});

/** Text that JSON.parse accepts and few writers make, with what is true of it. */
interface Hostile {
  readonly text: string;
  /** The members it names at all levels, and whether an object names one twice. */
  readonly members: number;
  readonly isRepeated: boolean;
  readonly depth: number;
}

const scalar = (text: string): Hostile => ({ text, members: 0, isRepeated: false, depth: 0 });
const spaces = fc.constantFrom('', ' ', '\r\n\t');
const written = fc.oneof(
  anyText().map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"\\\\"',
    '"\\\\\\""',
    '"\\ud800"',
    '"\ud800"',
    '"[{"',
    '"\\u0022,"',
    '"\u2028"',
    '"__proto__"',
  ),
);
// V8 takes an escaped name for a backslash where it has seen that name in the same place of another object (Node 24).
const writtenNames = written.filter((text) => !(JSON.parse(text) as string).includes('\\'));
const scalars = fc.oneof(
  written,
  fc.stringMatching(/^-?(?:0|[1-9]\d{0,40})(?:\.\d{1,9})?(?:[eE][+-]?\d{1,4})?$/),
  fc.constantFrom('true', 'false', 'null'),
);
const deep = fc
  .nat(300)
  .map((depth): Hostile => ({ ...scalar('['.repeat(depth) + ']'.repeat(depth)), depth }));

function joined(open: string, items: readonly Hostile[], close: string, white: string): Hostile {
  return {
    text:
      white + open + white + items.map(({ text }) => text).join(`${white},${white}`) + white + close + white,
    members: items.reduce((sum, item) => sum + item.members, 0),
    isRepeated: items.some((item) => item.isRepeated),
    depth: 1 + Math.max(0, ...items.map(({ depth }) => depth)),
  };
}

function object(members: readonly (readonly [string, Hostile])[], white: string): Hostile {
  const named = members.map(([name, value]) => ({ ...value, text: `${name}${white}:${white}${value.text}` }));
  const all = joined('{', named, '}', white);
  const names = new Set(members.map(([name]) => JSON.parse(name) as string));
  const isRepeated = all.isRepeated || names.size < members.length;
  return { ...all, members: all.members + members.length, isRepeated };
}

const { hostile } = fc.letrec<{ hostile: Hostile }>((tie) => ({
  hostile: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    scalars.map(scalar),
    deep.filter(({ depth }) => depth > 0),
    fc
      .tuple(fc.array(tie('hostile'), { maxLength: 4 }), spaces)
      .map(([items, white]) => joined('[', items, ']', white)),
    fc
      .tuple(fc.array(fc.tuple(writtenNames, tie('hostile')), { maxLength: 5 }), spaces)
      .map(([members, white]) => object(members, white)),
  ),
}));

/** Every second name, and all. */
function picks(all: readonly string[]): readonly ReadonlySet<string>[] {
  const even = all.filter((_, at) => at % 2 === 0);
  return [new Set(even), new Set(all)];
}

test.each([
  ['{"a":1,"b" : [1, 2] ,"a":3}', '{"b" : [1, 2]}'],
  ['{ "a":1 , "\\u0061":2 , "b":"a" }', '{ "b":"a" }'],
  ['{"b":{"a":1},"a":2 }', '{"b":{"a":1} }'],
  ['{"a":1,"a":2}', '{}'],
  ['{"b":1}', '{"b":1}'],
  ['["a"]', '["a"]'],
])('%s without a is %s', (text, rest) => {
  expect(cutMembers(text, 0, new Set(['a']))).toBe(rest);
});

test('members are counted as often as they are there', () => {
  expect(allMembers('{"a":1,"a":2}', 0, 2)?.size).toBe(1);
  expect(allMembers('{"a":1,"a":2}', 0, 1)).toBeUndefined();
  expect(allMembers('[]', 0, 1)?.size).toBe(0);
});

test('says of hostile text what JSON.parse says of it', () => {
  fc.assert(
    fc.property(hostile, ({ text, members, isRepeated, depth }) => {
      const value: unknown = JSON.parse(text);
      const compact = compactText(text);
      expect(JSON.parse(compact.json)).toEqual(value);
      expect(compact.json.replaceAll(/"(?:[^"\\]|\\.)*"/gs, '')).not.toMatch(/\s/);
      expect(compact.members).toBe(members);
      expect(repeatedMember(text) !== undefined).toBe(isRepeated);
      expect([isDeeperThan(depth, text), isDeeperThan(depth - 1, text)]).toEqual([false, depth > 0]);
      expect(findElements(text).map((span) => JSON.parse(rawAt(text, span)) as unknown)).toEqual(
        Array.isArray(value) ? value : [],
      );
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
      for (const [name, member] of Object.entries(value)) {
        expect(JSON.parse(memberSlice(text, [name]) ?? '')).toEqual(member);
      }
      const found = findMembers(text, 0, new Set(Object.keys(value)));
      if (!isRepeated) expect(found?.size).toBe(Object.keys(value).length);
      const all = [...(allMembers(text, 0, Infinity) ?? [])];
      expect(
        Object.fromEntries(all.map(([name, span]) => [name, JSON.parse(rawAt(text, span)) as unknown])),
      ).toEqual({ ...value });
      for (const picked of picks(Object.keys(value))) {
        const rest = Object.entries(value).filter(([name]) => !picked.has(name));
        expect(Object.entries(JSON.parse(cutMembers(text, 0, picked)) as object)).toEqual(rest);
      }
    }),
    { numRuns: 1_000 },
  );
});

test.each([
  [
    String.raw`{"\u0061":"\u0061" , "\u0062" :{"c\u0022\\\u0000":[]}}`,
    String.raw`{"a":"\u0061" , "b" :{"c\"\\\u0000":[]}}`,
  ],
  [String.raw`{"a\"\u0062":1,"":2}`, String.raw`{"a\"b":1,"":2}`],
  [String.raw`["\"a\": \u0061",":"]`, String.raw`["\"a\": \u0061",":"]`],
  [String.raw`:\ " :`, String.raw`:\ " :`],
])('%s has the names of %s', (text, plain) => {
  expect(withPlainNames(text)).toBe(plain);
});

test('names lose their escapes wherever they stand in hostile text, and nothing else changes', () => {
  fc.assert(
    fc.property(hostile, ({ text }) => {
      const plain = withPlainNames(text);
      expect(JSON.stringify(JSON.parse(plain))).toBe(JSON.stringify(JSON.parse(text)));
      for (const [, name = ''] of plain.matchAll(/"((?:[^"\\]|\\.)*)"\s*:/gs)) {
        if (!name.includes('\\')) continue;
        expect(name).toBe(JSON.stringify(JSON.parse(`"${name}"`)).slice(1, -1));
      }
    }),
  );
});
