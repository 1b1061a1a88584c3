import { expect, test } from 'vitest';
import { whyNotBegun } from './launch.ts';

test.each([
  ['nobody could say anything', '', true],
  ['bubblewrap could not note it', 'bwrap: Write to info_fd: No space left on device', true],
  ['the last room was taken since', 'bwrap: Write to info_fd: No space left on device', false],
  ['another line came before', 'warning; bwrap: Write to info_fd: No space left on device', false],
])('a full disk is named, with what helps, where %s', (_where, said, full) => {
  expect(whyNotBegun(said, full, '/state/a1')).toMatchObject({
    reason: expect.stringMatching(/^the disk at "[^"]*" is full \(ENOSPC\)/),
    hint: expect.stringContaining('free space'),
  });
});

test.each([
  ['bwrap: execvp node: No such file or directory', true],
  ['error: no space left on device, says the server', false],
  ['', false],
])('anything else is told as it was said: %j', (said, full) => {
  expect(whyNotBegun(said, full, '/state/a1')).toEqual({ reason: said });
});
