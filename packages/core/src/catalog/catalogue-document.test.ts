import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openDocument, type Element } from './catalogue-document.ts';
import { MAX_DEPTH } from './catalogue-text.ts';

const open = (text: string) => openDocument(Buffer.from(text), 'test');
const asIndented = (value: unknown, indent: number | undefined): string =>
  JSON.stringify(value, undefined, indent);
const indents = fc.constantFrom(undefined, 1);

/** Documents whose lists are cut out, among others. */
const anyDocument = fc
  .tuple(
    fc.array(fc.jsonValue()),
    fc.constantFrom(
      (list: unknown): unknown => list,
      (list: unknown): unknown => ({ servers: list, metadata: { count: 1 } }),
      (list: unknown): unknown => ({ version: '1"[', data: { servers: list, skills: [], x: { y: [list] } } }),
    ),
    fc.jsonValue(),
  )
  .map(([list, wrap, other]) => (list.length === 0 ? other : wrap(list)));

/** The document put together again from its frame and its elements. */
function rebuilt(text: string): unknown {
  const document = open(text);
  const fill = (value: unknown): unknown => {
    if (Array.isArray(value) && value.length === 1 && value[0] !== undefined) {
      return [...document.elements(value)].map((element: Element) => element.value);
    }
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner)]));
  };
  return fill(document.frame);
}

describe('openDocument', () => {
  test('finds every element of every list, wherever it stands', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.array(fc.jsonValue()), indents, (servers, skills, indent) => {
        const value = { servers: skills, data: { servers, skills, plugins: [] }, x: [] };
        expect(rebuilt(asIndented(value, indent))).toEqual(JSON.parse(JSON.stringify(value)));
        expect(rebuilt(asIndented(servers, indent))).toEqual(JSON.parse(JSON.stringify(servers)));
      }),
    );
  });

  test('gives the text of each element without white space, and the number of its members', () => {
    const list =
      '[ {"b" :1.0,"a":[ {"c d":"\\" }, :"} ]} ,"],\\\\" , 1e400,{"\\u00e9\u{1F600}":"ü \t"} ]'.replace(
        '\t',
        '\\t',
      );
    const elements = [...open(list).elements([0])];
    expect(elements.map(({ json, members }) => [json, members])).toEqual([
      ['{"b":1.0,"a":[{"c d":"\\" }, :"}]}', 3],
      ['"],\\\\"', 0],
      ['1e400', 0],
      ['{"\\u00e9\u{1F600}":"ü \\t"}', 1],
    ]);
  });

  test('accepts a text if, and only if, JSON.parse does, however it is damaged', () => {
    const damage = fc.tuple(
      fc.nat(),
      fc.nat({ max: 2 }),
      fc.constantFrom('', ',', '[', ']', '{', '}', '"', ':', ' ', '1'),
    );
    fc.assert(
      fc.property(anyDocument, indents, fc.array(damage, { maxLength: 2 }), (value, indent, damages) => {
        let text = asIndented(value, indent);
        for (const [place, cut, put] of damages) {
          const at = place % (text.length + 1);
          text = text.slice(0, at) + put + text.slice(at + cut);
        }
        const bytes = Buffer.from(text);
        const isJson = works(() => JSON.parse(bytes.toString('utf8')));
        expect(works(() => openDocument(bytes, 'test').checkOthers([]))).toBe(isJson);
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    '[1 2]',
    '[tr ue]',
    '[1,]',
    '[,1]',
    '[1}',
    '{"servers":[1}',
    '{"servers":[]]}',
    '{"servers":[{"a":1]}]}',
    '{"servers":[1 2],"servers":[]}',
    ']',
    '[',
    '["',
    '',
  ])('refuses %s', (text) => {
    expect(() => open(text).checkOthers([])).toThrow(expect.objectContaining({ code: 'catalog/not-json' }));
  });

  test('says where a list breaks', () => {
    expect(() => [...open('{"servers":[\n{"a":1},\n{"a":x}]}').elements([0])]).toThrow('line 3, column 6');
  });

  test('counts the depth over frame and lists', () => {
    const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    expect(() => open(nested(MAX_DEPTH))).not.toThrow();
    expect(() => open(nested(MAX_DEPTH + 1))).toThrow(
      expect.objectContaining({ code: 'catalog/wrong-shape' }),
    );
    for (const deep of [`{"x":${nested(MAX_DEPTH)},"y":1}`, `[${nested(MAX_DEPTH)},{"z":[]}]`]) {
      expect(() => open(deep)).toThrow(expect.objectContaining({ code: 'catalog/wrong-shape' }));
    }
    expect(() => open('['.repeat(MAX_DEPTH + 1))).toThrow(
      expect.objectContaining({ code: 'catalog/not-json' }),
    );
  });
});

function works(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch {
    return false;
  }
}
