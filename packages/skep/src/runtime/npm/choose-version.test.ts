import { expect, test } from 'vitest';
import { chooseVersion } from './choose-version.ts';

const versions = ['0.0.3', '0.0.4', '0.2.1', '0.2.9', '0.3.0', '1.0.0', '1.2.0', '1.2.7', '1.10.0', '2.0.0-rc.1', '2.0.0-rc.2', '2.0.0', '3.0.0-beta']; // prettier-ignore
const packument = {
  'dist-tags': { latest: '2.0.0', next: '3.0.0-beta', gone: '9.9.9' },
  versions: Object.fromEntries(versions.map((version) => [version, {}])),
};

test.each([
  [undefined, '2.0.0'],
  ['latest', '2.0.0'],
  ['next', '3.0.0-beta'],
  ['1.2.0', '1.2.0'],
  ['1.2', '1.2.7'],
  ['1', '1.10.0'],
  ['1.x', '1.10.0'],
  ['x', '2.0.0'],
  ['^1.2.0', '1.10.0'],
  ['~1.2.0', '1.2.7'],
  ['~1', '1.10.0'],
  ['^0.2.1', '0.2.9'],
  ['^0.0.3', '0.0.3'],
  ['^0.0', '0.0.4'],
  ['^0', '0.3.0'],
  ['^2.0.0-rc.1', '2.0.0'],
  ['~3.0.0-alpha', '3.0.0-beta'],
  ['^1.11', undefined],
  ['9.9.9', undefined],
  ['gone', undefined],
  ['nonsense', undefined],
  ['constructor', undefined],
])('%s means %s', (wanted, expected) => expect(chooseVersion(packument, wanted)).toBe(expected));

test('takes what is deprecated only where there is nothing else', () => {
  const deprecated = { deprecated: 'do not use' };
  const some = { 'dist-tags': {}, versions: { '1.0.0': {}, '1.1.0': deprecated, '2.0.0': deprecated } };
  expect(chooseVersion(some, '^1')).toBe('1.0.0');
  expect(chooseVersion(some, '^2')).toBe('2.0.0');
});
