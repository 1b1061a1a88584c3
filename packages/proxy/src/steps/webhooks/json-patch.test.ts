import { describe, expect, test } from 'vitest';
import { patchText, type PatchFault } from './json-patch.ts';

const op = (kind: string, path: string, more: object = {}): object => ({
  op: kind,
  path: `/mcp_request${path}`,
  ...more,
});
const from = (path: string): object => ({ from: `/mcp_request${path}` });

describe('RFC 6902', () => {
  test.each<[string, string, object[], string]>([
    ['adds a member', '{"a":1}', [op('add', '/b', { value: [2] })], '{"a":1,"b":[2]}'],
    ['adds over a member', '{"a":1}', [op('add', '/a', { value: null })], '{"a":null}'],
    ['adds into a list', '{"a":[1,3]}', [op('add', '/a/1', { value: 2 })], '{"a":[1,2,3]}'],
    ['adds at the end of a list', '{"a":[1]}', [op('add', '/a/-', { value: 2 }), op('add', '/a/2', { value: 3 })], '{"a":[1,2,3]}'],
    ['removes', '{"a":[1,2],"b":{"c":1}}', [op('remove', '/a/0'), op('remove', '/b/c')], '{"a":[2],"b":{}}'],
    ['replaces', '{"a":[1],"b":2}', [op('replace', '/a/0', { value: {} }), op('replace', '/b', { value: 3 })], '{"a":[{}],"b":3}'],
    ['moves', '{"a":{"b":1},"c":{}}', [op('move', '/c/d', from('/a/b'))], '{"a":{},"c":{"d":1}}'],
    ['moves within a list', '{"a":[1,2,3]}', [op('move', '/a/2', from('/a/0'))], '{"a":[2,3,1]}'],
    ['copies by value', '{"a":{"b":1}}', [op('copy', '/c', from('/a')), op('replace', '/c/b', { value: 2 })], '{"a":{"b":1},"c":{"b":2}}'],
    ['tests by value', '{"a":1.0,"b":{"x":1,"y":[2]}}', [op('test', '/a', { value: 1 }), op('test', '/b', { value: { y: [2], x: 1 } })], '{"a":1.0,"b":{"x":1,"y":[2]}}'],
    ['reads escapes', '{"a/b":{"~":1}}', [op('replace', '/a~1b/~0', { value: 2 })], '{"a/b":{"~":2}}'],
    ['reads ~01 as ~1', '{"~1":1}', [op('remove', '/~01')], '{}'],
    ['leaves digits alone', '{"n":9007199254740993,"m":1.0,"x":0}', [op('replace', '/x', { value: 1 })], '{"n":9007199254740993,"m":1.0,"x":1}'],
    ['keeps a name that is no name of a prototype', '{"a":1}', [op('add', '/__proto__', { value: { b: 1 } })], '{"a":1,"__proto__":{"b":1}}'],
    ['ignores members that it does not know', '{"a":1}', [op('remove', '/a', { why: 'x' })], '{}'],
  ])('%s', (_name, text, patch, expected) => {
    expect(patchText(text, patch)).toEqual({ text: expected });
  }); // prettier-ignore

  test.each<[PatchFault, string, unknown]>([
    ['malformed', 'no list', { op: 'add' }],
    ['malformed', 'no operation', ['add']],
    ['malformed', 'an unknown operation', [op('spoil', '/a')]],
    ['malformed', 'no value', [op('add', '/a')]],
    ['malformed', 'no path', [{ op: 'remove' }]],
    ['malformed', 'no from', [op('move', '/a')]],
    ['malformed', 'a path without a slash', [{ op: 'remove', path: 'mcp_request/a' }]],
    ['malformed', 'a bad escape', [op('remove', '/a~2')]],
    ['malformed', 'more operations than anybody needs', Array.from({ length: 1_001 }, () => op('test', '/a', { value: 1 }))],
    ['out-of-scope', 'the whole document', [{ op: 'replace', path: '', value: {} }]],
    ['out-of-scope', 'the whole request', [op('replace', '', { value: {} })]],
    ['out-of-scope', 'the principal', [{ op: 'replace', path: '/principal/sub', value: 'x' }]],
    ['out-of-scope', 'what only begins alike', [{ op: 'add', path: '/mcp_requests/a', value: 1 }]],
    ['out-of-scope', 'a source elsewhere', [op('copy', '/a', { from: '/principal' })]],
    ['not-applicable', 'a member that is not there', [op('remove', '/x')]],
    ['not-applicable', 'a parent that is not there', [op('add', '/x/y', { value: 1 })]],
    ['not-applicable', 'an index beyond the list', [op('add', '/l/2', { value: 1 })]],
    ['not-applicable', 'an index that is none', [op('replace', '/l/01', { value: 1 })]],
    ['not-applicable', 'the end of a list as a value', [op('remove', '/l/-')]],
    ['not-applicable', 'a member of a number', [op('add', '/n/x', { value: 1 })]],
    ['not-applicable', 'the digits of a number', [op('test', '/n/rawJSON', { value: '9007199254740993' })]],
    ['not-applicable', 'what every object inherits', [op('copy', '/a', from('/constructor'))]],
    ['not-applicable', 'a move into itself', [op('move', '/o/p/q', from('/o'))]],
    ['not-applicable', 'a failed test', [op('remove', '/a'), op('test', '/n', { value: 1 })]],
    ['not-applicable', 'what grows without end', Array.from({ length: 100 }, () => op('copy', '/o/-', from('/o'))).concat(Array.from({ length: 40 }, (_none, at) => op('copy', `/o/c${at}`, from('/o'))))],
  ])('a patch is %s: %s', (fault, _name, patch) => {
    expect(patchText('{"a":1,"l":[1],"o":{"p":{}},"n":9007199254740993}', patch)).toEqual({ fault });
  }); // prettier-ignore
});
