import { describe, expect, test } from 'vitest';
import { isReadOnly, lowerHardening, type Hardening } from './hardening.ts';

const SAID = {
  node: "Error: EROFS: read-only file system, open '/app/state.json'",
  python: "OSError: [Errno 30] Read-only file system: '/app/state'",
  shell: 'sh: can’t create /app/x: Read-only file system',
  denied: "Error: EACCES: permission denied, open '/root/x'",
  errno: "PermissionError: [Errno 13] Permission denied: '/root/x'",
  exec: 'exec: "/root/bin/server": permission denied: unknown',
  other: 'Error: API_KEY is not set',
} as const;

describe('a server that did not start', () => {
  test.each<[Hardening, keyof typeof SAID, Hardening | undefined]>([
    ['other-user', 'denied', 'read-only'],
    ['other-user', 'errno', 'read-only'],
    ['other-user', 'exec', 'read-only'],
    // As the root of its image it could not write either.
    ['other-user', 'node', 'none'],
    ['other-user', 'python', 'none'],
    ['read-only', 'shell', 'none'],
    ['read-only', 'denied', 'none'],
    ['other-user', 'other', undefined],
    ['read-only', 'other', undefined],
    ['none', 'node', undefined],
  ])('as %s and said %s is tried as %s', (hardening, said, next) => {
    const lines = ['Starting', SAID[said], 'Bye'];
    expect(lowerHardening(hardening, { said: lines, isLate: false, insists: false })).toBe(next);
  });

  test.each<[Hardening, keyof typeof SAID, Hardening | undefined]>([
    ['other-user', 'node', undefined],
    ['other-user', 'denied', 'read-only'],
    ['read-only', 'node', undefined],
    ['read-only', 'denied', undefined],
  ])('and has to be read-only is as %s, after %s, tried as %s', (hardening, said, next) => {
    expect(lowerHardening(hardening, { said: [SAID[said]], isLate: false, insists: true })).toBe(next);
  });

  test('in time is tried once more only', () => {
    expect(lowerHardening('other-user', { said: [SAID.denied], isLate: true, insists: false })).toBe('none');
  });
});

test('the person’s word on its own files counts before what was tried', () => {
  expect(isReadOnly({})).toBe(false);
  expect(isReadOnly({ hardening: 'other-user' })).toBe(true);
  expect(isReadOnly({ hardening: 'none' })).toBe(false);
  expect(isReadOnly({ hardening: 'none', read_only: true })).toBe(true);
  expect(isReadOnly({ hardening: 'read-only', read_only: false })).toBe(false);
});
