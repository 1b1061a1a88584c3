import { expect, test } from 'vitest';
import { allows, compareVersions, isPreRelease, isPythonVersion } from './version.ts';

test('versions are in the order that PEP 440 gives them', () => {
  const ordered = ['no version', '0.9', '1.0.dev1', '1.0a1.dev2', '1.0a1', '1.0-beta.2', '1.0rc1', '1.0', '1.0+local', '1.0.post1.dev1', '1.0-1', '1.0.1', '1.10', '2026.10.19', '1!0.1']; // prettier-ignore
  expect(ordered.toReversed().toSorted(compareVersions)).toEqual(
    // What counts as equal keeps its place.
    ordered.map((one) => (one === '1.0-1' ? '1.0-1' : one)),
  );
});

test.each([
  ['1.0', '1.0.0'],
  ['v1.0', '1'],
  ['1.0.RC1', '1.0c1'],
  ['1.0.post2', '1.0-2'],
])('%s is the same version as %s', (left, right) => {
  expect(compareVersions(left, right)).toBe(0);
});

test('what is no version or no release is known', () => {
  expect(['1.0', '1.0.x', '', '../1', '1'.repeat(40)].map(isPythonVersion)).toEqual([true, false, false, false, false]); // prettier-ignore
  expect(['1.0', '1.0.post1', '1.0b1', '1.0.dev0'].map(isPreRelease)).toEqual([false, false, true, true]);
});

test.each([
  ['>=3.10', true],
  ['>=3.12', false],
  ['>=3.8,<4', true],
  ['<3.11', false],
  ['==3.11.*', true],
  ['!=3.11.*', false],
  ['~=3.10', true],
  ['~=3.10.1', false],
  ['> 3.11.1', true],
  ['===3.11.2', true],
  ['', true],
  ['of no kind', true],
])('a package that needs Python "%s" fits 3.11.2: %s', (specifiers, fits) => {
  expect(allows(specifiers, '3.11.2')).toBe(fits);
});
