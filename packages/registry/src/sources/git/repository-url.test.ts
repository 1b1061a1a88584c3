import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRepository } from './repository-url.ts';

test.each([
  [
    'https://git.example/a/b.git',
    { transport: 'http', url: 'https://git.example/a/b.git', host: 'git.example', port: 443 },
  ],
  [
    'http://git.example:8080/a',
    { transport: 'http', url: 'http://git.example:8080/a', host: 'git.example', port: 8080 },
  ],
  [
    'HTTPS://Git.Example/a',
    { transport: 'http', url: 'https://git.example/a', host: 'git.example', port: 443 },
  ],
  ['https://[::1]:8443/a', { transport: 'http', url: 'https://[::1]:8443/a', host: '::1', port: 8443 }],
  [
    'ssh://git@git.example/a.git',
    { transport: 'ssh', url: 'ssh://git@git.example/a.git', host: 'git.example', port: 22 },
  ],
  [
    'ssh://git@git.example:2222/a',
    { transport: 'ssh', url: 'ssh://git@git.example:2222/a', host: 'git.example', port: 2222 },
  ],
  [
    'git@git.example:team/a.git',
    { transport: 'ssh', url: 'git@git.example:team/a.git', host: 'git.example', port: 22 },
  ],
  ['git.example:a', { transport: 'ssh', url: 'git.example:a', host: 'git.example', port: 22 }],
])('%s is a repository', (address, expected) => {
  expect(parseRepository(address)).toEqual(expected);
});

test('user name and password leave the address', () => {
  expect(parseRepository('https://an%40n:p%3Aw@git.example/a')).toEqual({
    transport: 'http',
    url: 'https://git.example/a',
    host: 'git.example',
    port: 443,
    credentials: { username: 'an@n', password: 'p:w' },
  });
});

test.each([
  'file:///srv/repo.git',
  '/srv/repo.git',
  './repo',
  '../repo',
  'repo',
  '',
  'ext::sh -c touch% /tmp/x',
  'ext::sh',
  'fd::17',
  'git://git.example/a',
  'ftp://git.example/a',
  '--upload-pack=touch',
  '-x:y',
  '-oProxyCommand=x:y',
  'git@-oProxyCommand=x:y',
  'ssh://-oProxyCommand=x/a',
  'ssh://-oProxyCommand=x@git.example/a',
  'ssh://git.example/-x',
  'git@git.example:-x',
  'ssh://git:pw@git.example/a',
  'ssh://git.example$(id)/a',
  'c:/repo',
  'C:\\repo',
  'https://',
  'https://git.example/a b',
  'https://git.example/a\nb',
  'git@git.example:a b',
  'https://%zz:x@git.example/a',
  'https://ann:x%0Ahost=evil.example@git.example/a',
  'https://ann%00:x@git.example/a',
])('%j is refused', (address) => {
  expect(() => parseRepository(address)).toThrow(
    expect.objectContaining({ code: 'source/invalid-repository' }),
  );
});

test('a password never stands in a message', () => {
  for (const address of [
    'ssh://git:hunter2@git.example/a',
    'ftp://x:hunter2@git.example/a',
    'https://%zz:hunter2@h/a',
  ]) {
    expect(() => parseRepository(address)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
    );
  }
});

test('whatever is admitted names a host that no program takes for an option', () => {
  const address = fc.string({
    unit: fc.constantFrom(
      'a',
      'git',
      '@',
      ':',
      '/',
      '//',
      '-',
      '.',
      ' ',
      'ssh',
      'https',
      'ext',
      '$',
      '[',
      ']',
    ),
  });
  fc.assert(
    fc.property(address, (text) => {
      let repository;
      try {
        repository = parseRepository(text);
      } catch {
        return;
      }
      expect(repository.host).toMatch(/^[a-z0-9][a-z0-9.-]*$|^[0-9a-f:.]+$/u);
      expect(repository.url).toMatch(/^(?:https?:\/\/|ssh:\/\/|[A-Za-z0-9])\S*$/u);
      expect(repository.url).not.toMatch(/^[a-z]+::/u);
    }),
    { numRuns: 3_000 },
  );
});
