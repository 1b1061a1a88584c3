import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { expect, test } from 'vitest';
import { gitSource } from './git-source.ts';

const surroundings = {
  env: {},
  tempDir: '/nonexistent',
  clock: manualClock(),
  allowPrivate: true,
};
const repository = 'https://ann:hunter2@git.example/a.git';

test.each(['/registry.json', './registry.json', 'registry.json', undefined])(
  'the path %s is that of the file',
  (path) => {
    const source = gitSource({ repository, ...(path === undefined ? {} : { path }) }, surroundings);
    expect(source.label).toBe('registry.json of https://git.example/a.git');
  },
);

test.each(['', '/', '../x', 'a/../x', 'a//b', 'a/', './', 'a/./b', 'a\0b'])(
  '%j is no path of a file',
  (path) => {
    expect(() => gitSource({ repository, path }, surroundings)).toThrow(
      expect.objectContaining({ code: 'source/invalid-path' }),
    );
  },
);

test('credentials in the address and in "auth" are one too many', async () => {
  const auth = { username: 'ann', passwordFile: '/nonexistent' };
  const failure = (address: string) =>
    gitSource({ repository: address, auth }, surroundings).fetch(new AbortController().signal);
  await expect(failure(repository)).rejects.toMatchObject({ code: 'source/invalid-credentials' });
  await expect(failure('git@git.example:a')).rejects.toMatchObject({
    code: 'source/invalid-credentials',
    message: '"git@git.example:a" signs in with an ssh key, not with a password',
  });
});
