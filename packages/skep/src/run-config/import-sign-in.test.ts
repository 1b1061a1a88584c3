import { describe, expect, test } from 'vitest';
import { withSignIn } from './import-sign-in.ts';

const oidc = { issuer: 'https://idp.example', audience: 'mcp' };
const step = (config: unknown) => ({ type: 'auth', parameters: { oidc_config: config } });
const strip = { type: 'strip-auth', parameters: {} };

describe('what an imported file says of signing in', () => {
  test.each<[string, object, object]>([
    ['is left alone where it says nothing', { name: 'x' }, { name: 'x' }],
    ['is nothing where it is null', { oidc_config: null }, {}],
    ['is kept', { oidc_config: oidc }, { oidc_config: oidc }],
    ['is kept where it is empty, and where it is no object', { oidc_config: {} }, { oidc_config: {} }],
    ['is kept where it is no object', { oidc_config: 3 }, { oidc_config: 3 }],
    [
      'has its files where Skep has them',
      { oidc_config: { ...oidc, auth_token_file: '/t', ca_bundle: '/ca' } },
      { oidc_config: oidc, jwks_auth_token_file: '/t', skep_ca_bundle: '/ca' },
    ],
    [
      'keeps a file that is said otherwise elsewhere, to be refused',
      { oidc_config: { ...oidc, auth_token_file: '/t' }, jwks_auth_token_file: '/u' },
      { oidc_config: { ...oidc, auth_token_file: '/t' }, jwks_auth_token_file: '/u' },
    ],
    [
      'has its secret among those of the workload',
      { oidc_config: { ...oidc, client_secret: 'hush' }, env_vars: { A: '1' }, secret_env: ['A'] },
      {
        oidc_config: oidc,
        env_vars: { A: '1', SKEP_OIDC_CLIENT_SECRET: 'hush' },
        secret_env: ['A', 'SKEP_OIDC_CLIENT_SECRET'],
      },
    ],
    [
      'has a reference to its secret among those of the workload',
      { oidc_config: { ...oidc, client_secret: 'idp,target=oidc' }, secrets: ['a,target=A'] },
      { oidc_config: oidc, secrets: ['a,target=A', 'idp,target=SKEP_OIDC_CLIENT_SECRET'] },
    ],
    ['has no empty secret', { oidc_config: { ...oidc, client_secret: '' } }, { oidc_config: oidc }],
    [
      'keeps a secret that is no text, to be refused',
      { oidc_config: { client_secret: 3 } },
      { oidc_config: { client_secret: 3 } },
    ],
    [
      'counts once where its steps say it again',
      { oidc_config: oidc, middleware_configs: [step(oidc), strip, { type: 'recovery' }] },
      { oidc_config: oidc, middleware_configs: [{ type: 'recovery' }] },
    ],
    [
      'counts where its step alone says it',
      { middleware_configs: [step(oidc)] },
      { oidc_config: oidc, middleware_configs: [] },
    ],
    [
      'keeps a step that says otherwise, to be refused',
      { oidc_config: oidc, middleware_configs: [step({ issuer: 'https://other.example' })] },
      { oidc_config: oidc, middleware_configs: [step({ issuer: 'https://other.example' })] },
    ],
    [
      'keeps a step that says more, to be refused',
      { oidc_config: oidc, middleware_configs: [{ ...step(oidc), when: 'x' }] },
      { oidc_config: oidc, middleware_configs: [{ ...step(oidc), when: 'x' }] },
    ],
    [
      'keeps the removal of tokens where nobody signs in, to be refused',
      { middleware_configs: [strip] },
      { middleware_configs: [strip] },
    ],
  ])('%s', (_name, document, expected) => {
    expect(withSignIn({ ...document })).toEqual(expected);
  });
});
