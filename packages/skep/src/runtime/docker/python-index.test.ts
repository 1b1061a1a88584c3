import { expect, test } from 'vitest';
import { pythonIndex } from './python-index.ts';

test.each([
  [{}, undefined],
  [{ UV_DEFAULT_INDEX: '', PIP_INDEX_URL: 'https://a.test/simple' }, 'https://a.test/simple'],
  [
    { UV_DEFAULT_INDEX: 'own=https://a.test/simple/', PIP_INDEX_URL: 'https://b.test/' },
    'https://a.test/simple/',
  ],
  [{ UV_DEFAULT_INDEX: 'https://user:s3cret@a.test/simple' }, 'https://a.test/simple'],
  [{ PIP_INDEX_URL: 'https://s3cret@a.test/simple' }, 'https://a.test/simple'],
])('keeps logins of a package index out of image builds: %j', (env, index) => {
  expect(pythonIndex(env)).toBe(index);
});

test.each(['https://a.test/\nRUN evil', 'https://a.test/\r', 'file:///etc', 'not an address'])(
  'lets no index break out of its line: %j',
  (text) => {
    expect(() => pythonIndex({ PIP_INDEX_URL: text })).toThrow(
      expect.objectContaining({ code: 'config/invalid' }),
    );
  },
);
