import { createSignInFetch } from '@skep/auth/sign-in/sign-in-fetch.ts';
import { expect, onTestFinished, test } from 'vitest';
import { mayBePrivateBy, refuseHidden } from './private-issuer.ts';

const PUBLIC = { address: '203.1.113.7', family: 4 };
const PRIVATE = { address: '10.0.0.1', family: 4 };
const ADDRESSES: Readonly<Record<string, (typeof PUBLIC)[]>> = {
  'public.test': [PUBLIC],
  'private.test': [PRIVATE],
  'both.test': [PUBLIC, PRIVATE],
};

function machine() {
  const fetch = createSignInFetch({ resolve: async (host) => ADDRESSES[host] ?? [] });
  onTestFinished(() => fetch.close());
  return fetch;
}

test.each(['https://private.test', 'https://both.test/realm'])(
  'a registry of the internet names no issuer that has a private address: %s',
  async (issuer) => {
    await expect(refuseHidden(issuer, 'https://public.test', machine())).rejects.toThrow(
      'names an identity provider at a private address',
    );
    await refuseHidden(issuer, 'https://private.test', machine());
  },
);

test.each([
  [{ allowPrivate: true }, 'https://public.test', { resource: false, issuer: false }],
  [{ allowPrivate: false }, 'https://private.test', { resource: false, issuer: false }],
  [{ allowPrivate: true }, 'https://private.test', { resource: true, issuer: false }],
  [
    { allowPrivate: false, issuer: 'https://both.test' },
    'https://public.test',
    { resource: false, issuer: true },
  ],
  [
    { allowPrivate: true, issuer: 'https://public.test' },
    'https://public.test',
    { resource: false, issuer: false },
  ],
])('%j may be private at %s: %j', async (wish, server, may) => {
  expect(await mayBePrivateBy(wish, server, machine())).toEqual(may);
});
