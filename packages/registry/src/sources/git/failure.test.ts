import { expect, test } from 'vitest';
import { gitFailure } from './failure.ts';

const URL = 'https://git.example/a.git';

test.each([
  ["fatal: Authentication failed for 'https://git.example/a.git/'", 'source/auth-failed'],
  [
    "fatal: could not read Username for 'https://git.example': terminal prompts disabled",
    'source/auth-failed',
  ],
  ['error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403', 'source/auth-failed'],
  [
    'git@git.example: Permission denied (publickey).\nfatal: Could not read from remote repository.',
    'source/auth-failed',
  ],
  ["fatal: repository 'https://git.example/a.git/' not found", 'source/repository-not-found'],
  ["fatal: '/srv/a' does not appear to be a git repository", 'source/repository-not-found'],
  [
    'ERROR: Repository not found.\nfatal: Could not read from remote repository.',
    'source/repository-not-found',
  ],
  [
    "fatal: unable to access 'https://git.example/': Could not resolve host: git.example",
    'source/unreachable',
  ],
  [
    "fatal: unable to access 'x': Failed to connect to 127.0.0.1 port 1: Connection refused",
    'source/unreachable',
  ],
  ["fatal: unable to access 'x': server certificate verification failed. CAfile: none", 'source/unreachable'],
  ['Host key verification failed.\nfatal: Could not read from remote repository.', 'source/unreachable'],
  ['fatal: Out of memory, malloc failed (tried to allocate 400000001 bytes)', 'source/too-large'],
  ['remote: fatal: Out of memory, malloc failed', 'source/git-failed'],
  ['something else entirely', 'source/git-failed'],
  ['', 'source/git-failed'],
])('%s', (stderr, code) => {
  expect(gitFailure(URL, stderr)).toMatchObject({ code, message: expect.stringContaining(`"${URL}"`) });
});

test('shows the line that says what is wrong, without secrets', () => {
  const error = gitFailure(
    URL,
    'warning: x\nfatal: odd thing at https://ann:hunter2@git.example/ with Basic aGVsbG86d29ybGQ=\nhint: y\n',
  );
  expect(error.message).toBe(
    `git could not fetch "${URL}": fatal: odd thing at https://[redacted]@git.example/ with Basic [redacted]`,
  );
  expect(JSON.stringify(error.detail)).not.toMatch(/hunter2|aGVsbG8/u);
});
