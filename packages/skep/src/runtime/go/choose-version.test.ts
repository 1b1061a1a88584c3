import { expect, test } from 'vitest';
import { chooseGoVersion, retractions } from './choose-version.ts';

test.each([
  [['v1.9.0', 'v1.10.0', 'v1.11.0-rc.1'], 'v1.10.0'],
  [['v0.1.0-alpha', 'v0.1.0-beta'], 'v0.1.0-beta'],
  [['v1.5.0', 'v2.0.0+incompatible'], 'v1.5.0'],
  [['v2.0.0+incompatible', 'v3.0.0+incompatible'], 'v3.0.0+incompatible'],
  [['latest', 'main', ''], undefined],
  [[], undefined],
])('of %j the newest is %s', (listed, version) => {
  expect(chooseGoVersion(listed)).toBe(version);
});

test('what a module takes back is not chosen', () => {
  const isRetracted = retractions(`module h.test/x

retract v1.4.0 // leaked a key
retract [v1.2.0, v1.3.9]
retract (
	v1.6.0
	[v1.8.0, v1.9.0] // both
	// v1.1.0
)
`);
  const listed = ['v1.1.0', 'v1.2.5', 'v1.4.0', 'v1.5.0', 'v1.6.0', 'v1.8.1'];
  expect(listed.filter((one) => !isRetracted(one))).toEqual(['v1.1.0', 'v1.5.0']);
  expect(chooseGoVersion(listed, isRetracted)).toBe('v1.5.0');
});
