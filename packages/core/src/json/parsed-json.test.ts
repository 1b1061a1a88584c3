import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parsedJson, parseJson } from './parsed-json.ts';

/** Has V8 expect the name in the last place of the next object that begins with the others, as any text before may. */
function expectNames(names: readonly string[]): void {
  JSON.parse(`{${names.map((name, at) => `${JSON.stringify(name)}:${at === 0 ? '[]' : at}`).join(',')}}`);
}

test('a name with escapes is read as everybody else reads it, whatever stood in its place before', () => {
  expectNames(['a', String.raw`\u00`]);
  const text = String.raw`{"a":1,"\u006eame":2}`;
  expect(parseJson(text)).toEqual({ a: 1, name: 2 });
  expect(parsedJson(text)).toEqual({ a: 1, name: 2 });
});

const escapedOrNot = (character: string) =>
  fc.constantFrom(character, `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
/** A name, and a spelling of it with an escape here and there. */
const spelled = fc.constantFrom('name', 'id', 'progressToken', 'é', 'a b').chain((name) =>
  fc.tuple(
    fc.constant(name),
    fc.tuple(...Array.from(name, escapedOrNot)).map((parts) => parts.join('')),
  ),
);

test('names spelled with any escapes are read', () => {
  fc.assert(
    fc.property(fc.uniqueArray(spelled, { selector: ([name]) => name }), (members) => {
      const names = members.map(([name]) => name);
      for (const [at, [name, spelling]] of members.entries()) {
        expectNames([...names.slice(0, at), spelling.slice(0, name.length)]);
      }
      const text = `{${members.map(([, spelling], at) => `"${spelling}" :${at}`).join()}}`;
      expect(Object.keys(parseJson(text) as object)).toEqual(names);
    }),
  );
});

test('as many names as anybody writes are read, the same ones and others', () => {
  const names = Array.from({ length: 10_000 }, (_, at) => `a${at % 3000}`);
  const text = names.map((name, at) => `{"\\u0061${name.slice(1)}" : ${at}, "b":"\\u0061"}`).join(',\n');
  expect(parseJson(`[${text}]`)).toEqual(names.map((name, at) => ({ [name]: at, b: 'a' })));
});

test.each([
  String.raw`{"a\"":1,"\\":"\"x\":","\n":["\u0061"]}`,
  String.raw`"\u0061"`,
  String.raw`{"__proto__":1,"\u005f_proto__":{"x":"\\"}}`,
])('%s is what JSON.parse makes of it', (text) => {
  expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(JSON.parse(text)));
});

test.each([String.raw`{"\x":1}`, String.raw`{"a\u00":1}`, '{"\\', '', String.raw`{"\u0061" 1}`])(
  '%s is no JSON',
  (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
    expect(parsedJson(text)).toBeUndefined();
  },
);
