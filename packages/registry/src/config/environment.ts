import type { PlainHttp } from '@skep/auth/token/issuer-fetch.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export const PREFIX = 'SKEP_REGISTRY_';
// Deployments that move over keep their variables; ours win where both are set.
const ALIAS_PREFIX = 'THV_REGISTRY_';

/** The environment with the `THV_REGISTRY_` names filled in under ours. */
export function withAliases(env: Environment): Environment {
  const aliases = Object.entries(env)
    .filter(([name]) => name.startsWith(ALIAS_PREFIX))
    .map(([name, value]) => [PREFIX + name.slice(ALIAS_PREFIX.length), value]);
  const own = Object.entries(env).filter(([, value]) => value !== undefined && value !== '');
  return { ...Object.fromEntries(aliases), ...Object.fromEntries(own) };
}

/** `SKEP_REGISTRY_INSECURE_URL` lets identity providers be anywhere over http: by environment only, never by a file. */
export function plainHttpFrom(env: Environment): PlainHttp {
  return env[`${PREFIX}INSECURE_URL`] === 'true' ? 'any' : 'loopback';
}
