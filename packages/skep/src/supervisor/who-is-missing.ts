import type { SignInState } from '@skep/auth/sign-in/port.ts';
import { isSignedInTo } from '../run-config/remote-auth.ts';
import type { RunConfig } from '../run-config/run-config.ts';

/** What a person does about a server elsewhere that does not know who asks; `token` is how that of whoever is signed in is. */
export function whoIsMissing(config: RunConfig, token?: SignInState): string {
  const { name, remote_auth_config: auth } = config;
  if (isSignedInTo(config) && token === 'running')
    return `the server refuses the token of whoever is signed in, who may not be allowed to use it: skep auth login ${name}, as somebody who is`;
  if (isSignedInTo(config)) return `nobody is signed in to the server: skep auth login ${name}`;
  if (auth !== undefined)
    return `the server refuses the bearer token: remove the workload with skep rm ${name}, and run it with a new one`;
  return `the server wants to know who asks: give it a header with --remote-forward-headers-secret; see skep logs --proxy ${name}`;
}
