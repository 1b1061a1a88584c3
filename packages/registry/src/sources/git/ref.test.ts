import { expect, test } from 'vitest';
import { describeRef, refOf } from './ref.ts';

test.each([
  [{}, { kind: 'default' }, 'the default branch'],
  [{ branch: 'main' }, { kind: 'branch', name: 'main' }, 'branch "main"'],
  [{ branch: 'feature/a.b@c' }, { kind: 'branch', name: 'feature/a.b@c' }, 'branch "feature/a.b@c"'],
  [{ tag: 'v1.2.3-rc.1' }, { kind: 'tag', name: 'v1.2.3-rc.1' }, 'tag "v1.2.3-rc.1"'],
  [{ commit: 'AB'.repeat(20) }, { kind: 'commit', id: 'ab'.repeat(20) }, `commit "${'ab'.repeat(20)}"`],
  [{ commit: 'ab'.repeat(32) }, { kind: 'commit', id: 'ab'.repeat(32) }, `commit "${'ab'.repeat(32)}"`],
])('%j', (keys, ref, description) => {
  expect(refOf(keys)).toEqual(ref);
  expect(describeRef(refOf(keys))).toBe(description);
});

test.each([
  '',
  '-x',
  '--upload-pack=x',
  'a b',
  'a..b',
  'a~1',
  'a^',
  'a:b',
  'a?',
  'a*',
  '[a',
  'a\\b',
  'a@{1}',
  '@',
  'a//b',
  '/a',
  'a/',
  'a.',
  '.a',
  'a/.b',
  'a.lock',
  'a.lock/b',
  'a\u0000',
  'a\n',
  'a\u007F',
])('%j is no branch', (branch) => {
  expect(() => refOf({ branch })).toThrow(expect.objectContaining({ code: 'source/invalid-ref' }));
});

test.each(['abc123', 'HEAD', '', 'g'.repeat(40), `${'a'.repeat(40)}\n`, 'a'.repeat(50)])(
  '%j is no commit',
  (commit) => {
    expect(() => refOf({ commit })).toThrow(expect.objectContaining({ code: 'source/invalid-ref' }));
  },
);

test('only one of the keys may be there', () => {
  expect(() => refOf({ branch: 'a', commit: 'b' })).toThrow(
    'only one of branch, tag and commit may be given, not branch and commit',
  );
});
