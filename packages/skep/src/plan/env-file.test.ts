import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseEnvFile } from './env-file.ts';

describe('an env file', () => {
  test.each<[string, Record<string, string>]>([
    ['A=1', { A: '1' }],
    ['export A=1', { A: '1' }],
    ['# A=1\n\nB=2\r\n', { B: '2' }],
    ['A=x=y', { A: 'x=y' }],
    ['A=', { A: '' }],
    ['A="with space"', { A: 'with space' }],
    ["A='it'", { A: 'it' }],
    ['A="half', { A: '"half' }],
    ['A="', { A: '"' }],
    ['A=1\nA=2', { A: '2' }],
    ['no equals sign', {}],
    ['A=${B} # not a comment', { A: '${B} # not a comment' }],
    ['\uFEFFA=1', { A: '1' }],
  ])('%j', (text, variables) => {
    expect(parseEnvFile(text, 'f')).toEqual(variables);
  });
  test('an empty key is an error with file and line', () => {
    expect(() => parseEnvFile('A=1\n=x', 'my.env')).toThrow('empty environment variable key in my.env:2');
  });
  test('a key that is no name is an error', () => {
    expect(() => parseEnvFile('A B=1', 'f')).toThrow(expect.objectContaining({ code: 'run/invalid-env' }));
  });
  test('__proto__ is a variable like any other', () => {
    expect(Object.keys(parseEnvFile('__proto__=x', 'f'))).toEqual(['__proto__']);
  });
  test('what was written comes back', () => {
    const key = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,8}$/);
    const value = fc.stringMatching(/^[a-z0-9=#$-]{0,12}$/);
    fc.assert(
      fc.property(fc.dictionary(key, value), (variables) => {
        const text = Object.entries(variables)
          .map(([k, v]) => `${k}=${v}`)
          .join('\n');
        expect(parseEnvFile(text, 'f')).toEqual({ ...variables });
      }),
    );
  });
});
