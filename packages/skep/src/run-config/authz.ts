import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { Shape } from '@skep/core/settings/shape.ts';
import type { AuthzSettings } from '@skep/proxy/steps/authorization.ts';
import { readConfigFile } from './read-config-file.ts';
import type { RunConfig } from './run-config.ts';

/** The members of a run configuration that say who may use what. */
export type AuthzConfig = {
  readonly [Key in 'authz_config' | 'authz_config_path']?: RunConfig[Key] | undefined;
};

const mapping: Shape<Readonly<Record<string, unknown>>> = (value, fail) =>
  isRecord(value) ? value : fail('must be an object');

/** The file of `--authz-config`; what it means is the proxy's to check. Fails as `readConfigFile`. */
export function readAuthzFile(path: string): Promise<NonNullable<AuthzConfig['authz_config']>> {
  const hint = 'see docs/behaviour/proxy.md#authorization';
  return readConfigFile({ path, what: 'authorization configuration', hint }, mapping);
}

/** Who may use what; undefined where everybody may use everything. */
export function authzOf({
  authz_config: document,
  authz_config_path: path,
}: AuthzConfig): AuthzSettings | undefined {
  if (document !== undefined) return { document };
  if (!path) return undefined;
  throw new SkepError('file/not-found', { message: `authorization configuration "${path}" does not exist` });
}

/** As `authzOf`, with what the file says now, where it is still there. Fails as `readAuthzFile`. */
export async function currentAuthz(config: AuthzConfig): Promise<AuthzSettings | undefined> {
  const { authz_config_path: path } = config;
  if (!path) return authzOf(config);
  try {
    return { document: await readAuthzFile(path) };
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return authzOf(config);
    throw error;
  }
}
