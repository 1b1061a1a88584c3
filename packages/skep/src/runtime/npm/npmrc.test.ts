import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { npmSetting, parseNpmrc, readNpmConfig } from './npmrc.ts';

let home: string;
beforeAll(async () => {
  home = await mkdtemp(path.join(tmpdir(), 'skep-npmrc-'));
});
afterAll(() => rm(home, { recursive: true, force: true }));

test.each([
  ['a key and its value', 'registry = https://a.test/', 'registry', 'https://a.test/'],
  ['a quoted value', 'registry = "https://a.test/npm"', 'registry', 'https://a.test/npm'],
  ['a quoted value with line breaks', String.raw`ca="A\nB"`, 'ca', 'A\nB'],
  ['a comment after the value', 'x = 1 ; comment', 'x', '1'],
  ['a sign that is no comment', String.raw`x = a\;b`, 'x', 'a;b'],
  ['a variable', '//a.test/:_authToken = ${TOKEN}', '//a.test/:_authToken', 's3cret'],
  ['a variable that is not set', 'x = ${NOTHING}', 'x', '${NOTHING}'],
  ['an optional variable that is not set', 'x = a${NOTHING?}', 'x', 'a'],
  ['the last of several', 'x = 1\nx = 2', 'x', '2'],
  ['the last of a list', 'x[] = 1\nx[] = 2', 'x', '2'],
  ['a key alone', 'strict-ssl', 'strict-ssl', 'true'],
  ['no comment line', '; x = 1\n# x = 2\n[section]', 'x', undefined],
])('reads %s', (_what, text, key, expected) => {
  expect(npmSetting(parseNpmrc(text, { TOKEN: 's3cret' }), key)).toBe(expected);
});

test('takes variables before the own file, and that before the one of the installation', async () => {
  await writeFile(path.join(home, '.npmrc'), 'a = user\nb = user');
  const globalconfig = path.join(home, 'global');
  await writeFile(globalconfig, 'a = global\nb = global\nc = global');
  const env = {
    NPM_CONFIG_A: 'variable',
    npm_config_globalconfig: globalconfig,
    'npm_config_//host.test/:_authToken': 'Token_1',
    npm_config_strict_ssl: 'false',
  };
  const config = await readNpmConfig({ env, home, execPath: '/nowhere/bin/node' });
  const wanted = ['a', 'b', 'c', '//host.test/:_authToken', 'strict-ssl'];
  expect(wanted.map((key) => npmSetting(config, key))).toEqual([
    'variable',
    'user',
    'global',
    'Token_1',
    'false',
  ]);
});

test('has no settings where nothing is set', async () => {
  const config = await readNpmConfig({
    env: {},
    home: path.join(home, 'none'),
    execPath: '/nowhere/bin/node',
  });
  expect([...config]).toEqual([]);
});
