import { expect, test } from 'vitest';
import { runtimeEnvLines, runtimeEnvShape } from './runtime-env.ts';

const read = (value: unknown): unknown =>
  runtimeEnvShape(value, (why, ...path) => {
    throw new TypeError([...path, why].join(': '));
  });

test.each(['A', 'A_B', 'NODE_OPTIONS', 'X1'])('a server may be given the variable %s', (name) => {
  expect(read({ [name]: 'x' })).toEqual({ [name]: 'x' });
});

test.each([
  ...'PATH HOME USER SHELL PWD HOSTNAME TERM LANG LC_ALL LD_PRELOAD LD_LIBRARY_PATH'.split(' '),
  'a',
  'Ab',
  '1A',
  '_A',
  'A-B',
  'A B',
  'A=B',
  'A\nB',
  '',
])('no server is given %j, which an image says for itself, or is no name', (name) => {
  expect(() => read({ [name]: 'x' })).toThrow('is not a variable name');
});

test.each(['', 'plain', 'a b', 'a=b', "it's", '$x', 'a&b', 'https://x.example/?a=1&b=2', '100%', '#x', '*'])(
  'a value may be %j',
  (value) => {
    expect(read({ A: value })).toEqual({ A: value });
  },
);

test.each([
  '`id`',
  '$(id)',
  '${x}',
  'a\\b',
  'a\nb',
  'a\rb',
  'a"b',
  'a;b',
  'a&&b',
  'a||b',
  'a|b',
  'a>b',
  'a<b',
  'a\0b',
])('no value is %j, of which a shell or a line of a Dockerfile makes something', (value) => {
  expect(() => read({ A: value })).toThrow('A: has a character that means something to a shell');
});

test('each is a line of a Dockerfile in which nothing is put in', () => {
  expect(runtimeEnvLines({ A: 'b c', D: '$x' })).toEqual(['ENV A="b c"', 'ENV D="\\$x"']);
  expect(runtimeEnvLines()).toEqual([]);
});
