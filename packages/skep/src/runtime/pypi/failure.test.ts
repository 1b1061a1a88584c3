import { expect, test } from 'vitest';
import { pipFailure } from './failure.ts';

test.each([
  ['Collecting a\nCollecting private@ git+https://h.test/x.git\n  Cloning …', 'git+https://h.test/x.git'],
  ['Collecting private @ http://h.test/x.whl', 'http://h.test/x.whl'],
  [
    "ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory: '/home/u/x-1.0.tar.gz'",
    '/home/u/x-1.0.tar.gz',
  ],
  ['pip._vendor.packaging.requirements.InvalidRequirement: Invalid URL: git+file:///x', 'git+file:///x'],
])('a dependency from elsewhere is named: %s', (output, place) => {
  expect(pipFailure('a@1.0', output).message).toBe(
    `package "a@1.0" depends on "${place}", which is not in a package index`,
  );
});

test.each([
  [
    'ERROR: Could not find a version that satisfies the requirement b\nERROR: No matching distribution found for b\n',
    'Could not find a version that satisfies the requirement b; No matching distribution found for b',
  ],
  [
    'error: subprocess-exited-with-error\n\n  × Preparing metadata (pyproject.toml) did not run successfully.\n  │ exit code: 1\n    OSError: no compiler\n',
    'Preparing metadata (pyproject.toml) did not run successfully. OSError: no compiler',
  ],
  ['ERROR: Exception:\nTraceback (most recent call last):\nAssertionError: odd\n', 'AssertionError: odd'],
  ['', 'pip gave no reason'],
])('what pip says is told short: %j', (output, why) => {
  expect(pipFailure('a@1.0', output).message).toBe(`package "a@1.0" could not be fetched: ${why}`);
});
