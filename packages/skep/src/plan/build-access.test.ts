import { expect, test } from 'vitest';
import { buildAccess, checkBuildVariable } from './build-access.ts';
import type { Surroundings } from './plan.ts';

test('a variable of the shell that is not set there is told, and left out', async () => {
  const told: string[] = [];
  const terminal = { err: (text: string) => void told.push(text) };
  const around = { env: { A_TOKEN: 'hush' }, terminal } as unknown as Surroundings;
  const given = { buildEnv: {}, buildEnvFromSecrets: {}, buildEnvFromShell: ['A_TOKEN', 'B_TOKEN'], buildAuthFiles: {} }; // prettier-ignore
  const access = buildAccess(given, around);
  expect(await access?.reveal()).toMatchObject({ env: { A_TOKEN: 'hush' } });
  expect(told).toEqual(['Warning: B_TOKEN, which builds take from the environment, is not set\n']);
});

test.each([
  'PATH',
  'HOME',
  'USER',
  'SHELL',
  'PWD',
  'HOSTNAME',
  'TERM',
  'LANG',
  'LC_ALL',
  'LD_PRELOAD',
  'LD_LIBRARY_PATH',
  'IFS',
  'ENV',
  '',
  'a',
  'npm_config_registry',
  '1A',
  '_A',
  'A-B',
  'A=B',
  'A\nRUN id',
  `A${'B'.repeat(200)}`,
])('builds are given no variable %j', (name) => {
  expect(() => checkBuildVariable(name, 'x')).toThrow(expect.objectContaining({ code: 'config/invalid' }));
});

test.each(['NPM_CONFIG_REGISTRY', 'PIP_INDEX_URL', 'UV_INDEX_URL', 'GOPROXY', 'GOPRIVATE', 'A1'])(
  'builds may be given %s, with a value that meets no shell',
  (name) => {
    for (const value of ['', 'x', '$(id) `id` ; && | > < \' "'])
      expect(checkBuildVariable(name, value)).toBe(value);
    for (const value of ['a\nb', 'a\rb', 'a\0b', 'x'.repeat(32_769)])
      expect(() => checkBuildVariable(name, value)).toThrow(
        expect.objectContaining({ code: 'config/invalid' }),
      );
  },
);
