import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compactText, elementSlices, memberSlice, nestsDeeperThan, repeatedMember } from './json-slices.ts';

/** Any JSON value, written with and without white space. */
const anyText = fc
  .jsonValue()
  .chain((value) =>
    fc.constantFrom(undefined, 1, '\t\r\n').map((indent) => JSON.stringify(value, null, indent)),
  );

describe('elementSlices', () => {
  it('cuts every element with its exact text', () => {
    expect(elementSlices(' [1.0, {"b":1,"a":[ ]} ,"],\\"", 1e400,null]')).toEqual([
      '1.0',
      '{"b":1,"a":[ ]}',
      '"],\\""',
      '1e400',
      'null',
    ]);
    expect(elementSlices('[ ]')).toEqual([]);
    expect(elementSlices('{}')).toEqual([]);
  });

  it('agrees with JSON.parse for any array', () => {
    fc.assert(
      fc.property(fc.array(anyText), (texts) => {
        expect(elementSlices(`[ ${texts.join(' ,\n')} ]`)).toEqual(texts);
      }),
    );
  });
});

describe('memberSlice', () => {
  it('follows a path and takes the last of equal members, as JSON.parse does', () => {
    const text = '{"a": 1, "d\\u0061ta": {"x": []}, "data" : { "x" :[ 2 ] } }';
    expect(memberSlice(text, ['data', 'x'])).toBe('[ 2 ]');
    expect(memberSlice(text, [])).toBe(text);
    expect(memberSlice(text, ['a', 'x'])).toBeUndefined();
    expect(memberSlice(text, ['missing'])).toBeUndefined();
  });

  it('agrees with JSON.parse for any object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), anyText), fc.string(), (members, other) => {
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

it('nestsDeeperThan counts open brackets outside strings', () => {
  expect(nestsDeeperThan('[{"a[[[":[]}]', 3)).toBe(false);
  expect(nestsDeeperThan('[{"a[[[":[]}]', 2)).toBe(true);
});

describe('compactText', () => {
  it('drops white space between tokens only', () => {
    expect(compactText(' { "a b" : [ 1.50 , "\\" x " ] }\n')).toEqual({
      json: '{"a b":[1.50,"\\" x "]}',
      members: 1,
    });
  });

  it('makes what JSON.stringify makes, for any value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(compactText(JSON.stringify(value, null, 2)).json).toBe(JSON.stringify(value));
      }),
    );
  });
});

it.each([
  ['{"a":1,"b":{"a":2}}', undefined],
  ['[{"a":1},{"a":1}]', undefined],
  ['{"a":"a","b":["a","a"]}', undefined],
  ['{"a":1,"b":{"c":1,"c":2}}', 'c'],
  ['{"x":[{}],"\\u0078":2}', 'x'],
  ['{"__proto__":1,"__proto__":2}', '__proto__'],
])('repeatedMember of %s is %s', (text, name) => {
  expect(repeatedMember(text)).toBe(name);
});
