import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { passwordFromFile, passwordIn } from './password-file.ts';

const LOGIN = { host: 'db.example', port: 5432, database: 'registry', user: 'app', password: undefined };

describe('passwordIn', () => {
  test.each([
    ['an exact line', 'db.example:5432:registry:app:secret', 'secret'],
    ['wildcards', '*:*:*:*:secret', 'secret'],
    [
      'the first line that fits',
      'other:5432:registry:app:no\n*:5432:registry:app:first\n*:*:*:*:second',
      'first',
    ],
    ['escaped colons and backslashes in the password', String.raw`*:*:*:app:a\:b\\c`, String.raw`a:b\c`],
    ['a password that ends in a lone backslash', '*:*:*:app:a\\', 'a\\'],
    ['lines with Windows ends', '*:*:*:app:secret\r\n', 'secret'],
    ['a comment before', '#*:*:*:*:comment\n*:*:*:*:secret', 'secret'],
    ['no line for another port', '*:5433:*:*:secret', undefined],
    ['no line for another user', '*:*:*:mig:secret', undefined],
    ['an escaped star is a name', String.raw`\*:*:*:*:secret`, undefined],
    ['a line without password', 'db.example:5432:registry:app', undefined],
    ['an empty password', '*:*:*:*:', undefined],
    ['nothing', '', undefined],
  ])('reads %s', (_, text, password) => {
    expect(passwordIn(text, LOGIN)).toBe(password);
  });

  test('calls a socket localhost', () => {
    expect(passwordIn('localhost:*:*:*:secret', { ...LOGIN, host: '/var/run/postgresql' })).toBe('secret');
  });

  test('finds every password that was written with escapes', () => {
    const text = fc
      .string({ minLength: 1 })
      .filter((value) => !/[\r\n]/.test(value) && !value.startsWith('#'));
    const escaped = (value: string): string => value.replaceAll(/[:\\]/g, String.raw`\$&`);
    fc.assert(
      fc.property(text, text, text, (host, user, password) => {
        fc.pre(host !== '*' && user !== '*' && !host.startsWith('/'));
        const line = [host, '5432', 'registry', user, password].map(escaped).join(':');
        expect(passwordIn(line, { ...LOGIN, host, user })).toBe(password);
      }),
    );
  });
});

describe('passwordFromFile', () => {
  const placed = async (mode: number): Promise<string> => {
    const directory = await mkdtemp(join(tmpdir(), 'skep-pgpass-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const path = join(directory, '.pgpass');
    await writeFile(path, '*:*:*:*:secret\n');
    await chmod(path, mode);
    return directory;
  };

  test('reads the file of the home directory, or the one that is named', async () => {
    const directory = await placed(0o600);
    const place = { named: undefined, homeDirectory: directory, platform: 'linux' };
    expect(await passwordFromFile(place, LOGIN)).toBe('secret');
    const named = { named: join(directory, '.pgpass'), homeDirectory: '/nowhere', platform: 'linux' };
    expect(await passwordFromFile(named, LOGIN)).toBe('secret');
  });

  test('does without a file at the usual place, but not without one that was named', async () => {
    const place = { named: undefined, homeDirectory: '/nowhere', platform: 'linux' };
    expect(await passwordFromFile(place, LOGIN)).toBeUndefined();
    await expect(passwordFromFile({ ...place, named: '/nowhere/pgpass' }, LOGIN)).rejects.toMatchObject({
      code: 'store/password-file',
      message: 'cannot read the password file "/nowhere/pgpass"',
    });
  });

  test.skipIf(process.platform === 'win32')('refuses a file that others may read', async () => {
    const directory = await placed(0o640);
    const place = { named: undefined, homeDirectory: directory, platform: 'linux' };
    await expect(passwordFromFile(place, LOGIN)).rejects.toMatchObject({
      code: 'store/password-file',
      message: expect.stringContaining('may be read by others (mode 640)'),
    });
  });
});
