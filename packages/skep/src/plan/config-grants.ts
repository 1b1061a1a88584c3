import { isLoopback } from '@skep/proxy/call/loopback.ts';
import { grantsOf } from '../permissions/grants.ts';
import type { RunConfig } from '../run-config/run-config.ts';

/** What running an imported configuration gives away of this machine, a phrase each; empty for one that keeps to itself. */
export function configGrants(config: RunConfig, cwd: string): readonly string[] {
  return [
    ...grantsOf(config.permission_profile, cwd),
    ...(config.sandbox_user === undefined ? [] : [`run as the user ${config.sandbox_user} in the sandbox`]),
    ...(config.allowed_origins ?? []).map((origin) => `let web pages of ${origin} use the server`),
    ...(isLoopback(config.host) ? [] : [`listen on ${config.host}, which other machines can reach`]),
  ];
}
