import { expect, test } from 'vitest';
import { isMissingPackage, npmComplaint, npmFailure } from './failure.ts';

test.each([
  ['npm error code E404\nnpm error 404 Not Found', true],
  ['npm error code ETARGET\nnpm error notarget No matching version', true],
  ['npm error code ECONNREFUSED', false],
  ['added 404 packages', false],
])('isMissingPackage(%j) is %s', (output, expected) => expect(isMissingPackage(output)).toBe(expected));

test('repeats what npm complains about, without its prefix and its log file', () => {
  const output =
    'npm error code EUSAGE\nnpm error\nnpm error Bad thing\nnpm error A complete log of this run: /x';
  expect(npmComplaint(output)).toBe('code EUSAGE; Bad thing');
  expect(npmFailure('x@1', output)).toMatchObject({
    code: 'runtime/prefetch-failed',
    message: expect.stringContaining('"x@1"'),
  });
});

test.each([
  [
    'git, by newer releases',
    'npm error code EALLOWGIT\nnpm error Refusing to fetch "x@git://h.test/x.git"',
    'x@git://h.test/x.git',
  ],
  [
    'git, by older ones',
    'npm error code 1\nnpm error command /bin/false --no-replace-objects ls-remote git://h.test/x.git',
    'git://h.test/x.git',
  ],
  ['a URL', 'npm error request to https://h.test/x.tgz failed, reason: connect', 'https://h.test/x.tgz'],
  ['a file', "npm error ENOENT: no such file or directory, open '/home/u/x.tgz'", '/home/u/x.tgz'],
])('names a dependency that is not from a registry: %s', (_what, output, named) => {
  expect(npmFailure('p@1', output)).toMatchObject({
    code: 'runtime/prefetch-failed',
    message: `package "p@1" depends on "${named}", which is not in a package registry`,
  });
});
