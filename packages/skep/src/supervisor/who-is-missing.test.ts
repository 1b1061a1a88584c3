import type { SignInState } from '@skep/auth/sign-in/port.ts';
import { expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { whoIsMissing } from './who-is-missing.ts';

const URL = 'https://mcp.invalid/mcp';

test.each<[string, object, SignInState | undefined, RegExp]>([
  ['nobody is signed in', { remote_auth_config: {} }, 'unauthenticated', /^nobody is signed in .*: skep auth login a1$/u],
  ['it refuses who is', { remote_auth_config: {} }, 'running', /^the server refuses the token .*: skep auth login a1, as somebody who is$/u],
  ['its token is refused', { remote_auth_config: { bearer_token_file: '/t' } }, 'running', /^the server refuses the bearer token/u],
  ['it was given nothing', {}, undefined, /--remote-forward-headers-secret/u],
])('a server that does not know who asks: %s', (_name, auth, token, said) => {
  const config = decodeRunConfig({ name: 'a1', image: URL, remote_url: URL, transport: 'streamable-http', ...auth }, 'f');
  expect(whoIsMissing(config, token)).toMatch(said);
}); // prettier-ignore
