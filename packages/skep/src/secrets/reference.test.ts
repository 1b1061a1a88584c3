import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkUserName, formatReference, isOwnedBy, ownedName, parseReference } from './reference.ts';

test('a reference names a secret and a variable', () => {
  expect(parseReference('github,target=GITHUB_TOKEN')).toEqual({ name: 'github', target: 'GITHUB_TOKEN' });
  expect(parseReference('op://My Vault/a=b/field,target=X')).toEqual({
    name: 'op://My Vault/a=b/field',
    target: 'X',
  });
});

test('what was parsed is written as it was', () => {
  fc.assert(
    fc.property(
      fc.stringMatching(/^[a-z/:._-]{1,20}$/),
      fc.stringMatching(/^[A-Z_]{1,9}$/),
      (name, target) => {
        expect(parseReference(formatReference({ name, target }))).toEqual({ name, target });
      },
    ),
  );
});

test.each([
  ['', 'secret parameter cannot be empty'],
  ['github', 'invalid secret parameter format: "github"'],
  ['github,target=', 'invalid secret parameter format'],
  [',target=X', 'invalid secret parameter format'],
  ['a,b,target=X', 'invalid secret parameter format'],
  ['a,target=X,target=Y', 'is no name of an environment variable: "X,target=Y"'],
  ['a,target=A B', 'is no name of an environment variable: "A B"'],
  ['a,target=X\u001b[31m', 'is no name of an environment variable'],
])('%j is refused: %s', (text, message) => {
  expect(() => parseReference(text)).toThrow(message);
});

test.each([
  ['', 'cannot be empty'],
  ['__skep_x', 'is reserved for system use'],
  ['a,b', 'cannot have a comma'],
  [' a', 'cannot begin or end with a space'],
  ['a\u202eb', 'cannot have control characters'],
  ['a\nb', 'cannot have control characters'],
  ['x'.repeat(257), 'cannot be longer than 256 characters'],
])('the name %j is refused: it %s', (name, why) => {
  expect(() => checkUserName(name)).toThrow(why);
});

test('no workload owns what another one does', () => {
  expect(isOwnedBy('a', ownedName('a', 'B'))).toBe(true);
  expect(isOwnedBy('a', ownedName('a_b', 'C'))).toBe(false);
  expect(isOwnedBy('a', ownedName('ab', 'C'))).toBe(false);
  expect(ownedName('a_b', 'C')).not.toBe(ownedName('a', 'b_C'));
});
