import { expect, it } from 'vitest';
import { npmRegistry } from './settings.ts';

it.each([
  ['nothing set', {}, undefined, undefined],
  [
    'the variable wins over the file',
    { npm_config_registry: 'https://a.test/x' },
    'registry=https://b.test/',
    'https://a.test/x',
  ],
  ['the variable may be upper case', { NPM_CONFIG_REGISTRY: 'https://a.test' }, undefined, 'https://a.test/'],
  ['the file', {}, '//b.test/:_authToken=secret\nregistry = "https://b.test/npm/"\n', 'https://b.test/npm/'],
  ['a scope line is not the registry', {}, '@s:registry=https://b.test/', undefined],
  ['a login is dropped', { npm_config_registry: 'https://u:p@a.test/' }, undefined, 'https://a.test/'],
  ['another scheme is ignored', { npm_config_registry: 'file:///etc' }, undefined, undefined],
])('%s', (_what, env, npmrc, expected) => {
  expect(npmRegistry({ env, ...(npmrc === undefined ? {} : { npmrc }) })).toBe(expected);
});
