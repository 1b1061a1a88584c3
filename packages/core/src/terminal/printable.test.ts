import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter } from '../json/any-text.fixture.ts';
import { printable, printableJson, printableLines } from './printable.ts';

const ESCAPE = '\u001B';
/** Escape, delete, C1 controls, a bidirectional override and isolate, a zero-width and a tag character. */
const UNSAFE = [ESCAPE, '\0', '\u007F', '\u009B', '\u202E', '\u2066', '\u200B', '\u{E0041}'];

describe('what others wrote cannot steer the terminal, nor read as something else', () => {
  test.each(UNSAFE.map((one) => [one.codePointAt(0)?.toString(16), one]))('U+%s', (_, unsafe) => {
    expect(printable(`a${unsafe}b`)).toBe('a\uFFFDb');
    expect(printableLines(`a${unsafe}b`)).toBe('a\uFFFDb');
    const json = JSON.stringify({ [`a${unsafe}`]: [`b${unsafe}`, 'ä日本'] });
    expect(printableJson(json)).not.toContain(unsafe);
    expect(JSON.parse(printableJson(json))).toEqual(JSON.parse(json));
  });
  test('in one line, where one is wanted', () => {
    expect(printable('a\r\n\tb\u2028c')).toBe('a b c');
    expect(printableLines('a\r\n\tb\rc\n')).toBe('a\n\tb\uFFFDc\n');
  });
  test('and JSON means the same whatever it holds', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: anyCharacter }), fc.constantFrom(0, 2, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space);
        expect(JSON.parse(printableJson(text))).toEqual(JSON.parse(text));
        expect(printableJson(text)).not.toMatch(/[\p{Cf}\u007F-\u009F]/u);
      }),
    );
  });
});
