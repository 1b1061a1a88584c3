import { expect, it } from 'vitest';
import type { RegistryConfig } from './config.ts';
import { unavailable } from './unavailable.ts';

it('names every source that is not read yet, and nothing of a plain configuration', () => {
  const plain = { sources: [{ name: 'files', kind: 'file' }] } as unknown as RegistryConfig;
  expect(unavailable(plain)).toEqual([]);
  const sources = ['a', 'b'].map((name) => ({ name, kind: 'kubernetes' }));
  expect(unavailable({ sources } as unknown as RegistryConfig).map(({ message }) => message)).toEqual([
    'source "a": kubernetes sources are not available yet',
    'source "b": kubernetes sources are not available yet',
  ]);
});
