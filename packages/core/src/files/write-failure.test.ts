import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { nameFullDisk, writeFailure } from './write-failure.ts';

/** What the system says where no room is left. */
function fullDisk(): unknown {
  try {
    writeFileSync('/dev/full', 'x');
    return undefined;
  } catch (error) {
    return error;
  }
}
const failing = (code: string, path?: string): Error =>
  Object.assign(new Error(code), { code, ...(path && { path }) });

describe.skipIf(process.platform !== 'linux')('a write that fails', () => {
  test('for want of room names the disk and what to do', () => {
    const failure = writeFailure('cannot write "/proc/none/there"', '/proc/none/there', fullDisk());
    expect(failure).toMatchObject({
      code: 'file/write-failed',
      message: 'cannot write "/proc/none/there": the disk at "/proc" is full (ENOSPC)',
      hint: 'free space on it, then try again',
    });
  });

  test.each([
    ['EDQUOT', 'the disk at "/proc" has no more room for you (EDQUOT)'],
    ['EROFS', 'the disk at "/proc" can only be read (EROFS)'],
    ['EACCES', 'EACCES'],
  ])('with %s says so', (code, reason) => {
    expect(writeFailure('no', '/proc/none', failing(code)).message).toBe(`no: ${reason}`);
  });

  test('where nobody expected it is named all the same, and other faults stay what they are', () => {
    expect(nameFullDisk(fullDisk())).toMatchObject({
      message: 'cannot write a file: its disk is full (ENOSPC)',
    });
    expect(nameFullDisk(failing('EROFS', '/proc/1'))).toMatchObject({
      message: 'cannot write "/proc/1": the disk at "/proc" can only be read (EROFS)',
    });
    for (const other of [failing('EACCES'), new TypeError('x'), 'x']) expect(nameFullDisk(other)).toBe(other);
  });
});
