import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { namesPythonIndex, parsePipConfig, readPythonSettings } from './pip-settings.ts';

/** The settings of a person with these variables and this file of pip. */
async function settings(env: Record<string, string>, pipConf = '') {
  const home = await mkdtemp(path.join(tmpdir(), 'skep-pip-'));
  onTestFinished(() => rm(home, { recursive: true }));
  await mkdir(path.join(home, '.config/pip'), { recursive: true });
  await writeFile(path.join(home, '.config/pip/pip.conf'), pipConf);
  const { general, extra } = await readPythonSettings({ env, home }, undefined);
  return { general: general?.href, extra: extra.map((url) => url.href) };
}

test('variables of uv are stronger than those of pip, and those than its files', async () => {
  const file = '[global]\nindex-url = https://file.test/simple\n';
  const pip = { PIP_INDEX_URL: 'https://pip.test/simple/' };
  const uv = { ...pip, UV_DEFAULT_INDEX: 'mine=https://uv.test/simple' };
  expect((await settings({}, file)).general).toBe('https://file.test/simple/');
  expect((await settings(pip, file)).general).toBe('https://pip.test/simple/');
  expect((await settings(uv, file)).general).toBe('https://uv.test/simple/');
  expect(namesPythonIndex(pip)).toBe(true);
  expect(namesPythonIndex({ PATH: '/bin', PIP_INDEX_URL: '' })).toBe(false);
});

test('further indexes come with the logins that variables have for their names', async () => {
  const env = {
    UV_INDEX: 'my-own=https://own.test/simple',
    UV_INDEX_MY_OWN_USERNAME: 'me',
    UV_INDEX_MY_OWN_PASSWORD: 'p@ss',
    PIP_EXTRA_INDEX_URL: 'https://a.test/ https://b.test/simple',
  };
  const file = '[install]\nextra-index-url =\n    https://c.test/simple\n    https://d.test/simple\n';
  expect((await settings(env, file)).extra).toEqual([
    'https://me:p%40ss@own.test/simple/',
    'https://a.test/',
    'https://b.test/simple/',
    'https://c.test/simple/',
    'https://d.test/simple/',
  ]);
});

test.each(['ftp://x.test/', 'x.test/simple', 'file:///srv/simple', 'https://x.test/\nENV A=b'])(
  'the index %j is refused by the name of its variable',
  async (text) => {
    await expect(settings({ PIP_INDEX_URL: text })).rejects.toMatchObject({
      code: 'config/invalid',
      message: 'PIP_INDEX_URL is no http or https address',
    });
  },
);

test('of the files of pip the sections for all and for installing count, the latter more', () => {
  const text = '[install]\nproxy: http://b\n[freeze]\nproxy = http://c\n# proxy = d\n[global]\nproxy=http://a\nIndex_URL = x\n'; // prettier-ignore
  expect([...parsePipConfig(text)]).toEqual([
    ['proxy', 'http://b'],
    ['index-url', 'x'],
  ]);
});
