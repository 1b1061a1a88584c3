import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { readAuthzFile, type AuthzConfig } from '../run-config/authz.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { RunValues } from '../settings/run-settings.ts';

/**
 * What `--authz-config` says, as it is saved. Fails with `usage/invalid-value`, `config/invalid` or `file/*` for what no
 * proxy could be started with.
 */
export async function planAuthz({ authzConfig: file }: RunValues, cwd: string): Promise<AuthzConfig> {
  if (file === undefined) return { authz_config: undefined, authz_config_path: undefined };
  if (file === '')
    throw new SkepError('usage/invalid-value', {
      message: '--authz-config is empty',
      hint: 'give it a value, or leave it out: without its file everybody may use everything',
    });
  const path = resolve(cwd, file);
  const document = await readAuthzFile(path);
  await checkAuthz(document, `authorization configuration "${path}"`);
  return { authz_config: document, authz_config_path: path };
}

/** What an imported file says: its content counts, and a path only where there is none. Fails as `planAuthz`. */
export async function importAuthz(said: AuthzConfig, cwd: string): Promise<Pick<RunConfig, 'authz_config'>> {
  const { authz_config: given, authz_config_path: path } = said;
  const document = given ?? (path ? await readAuthzFile(resolve(cwd, path)) : undefined);
  if (document === undefined) return {};
  await checkAuthz(document, '"authz_config"');
  return { authz_config: document };
}

/** Makes of it what a proxy will, to hear what is wrong with it; no decision point is asked. */
async function checkAuthz(document: Readonly<Record<string, unknown>>, where: string): Promise<void> {
  const { openAuthorization } = await import('@skep/proxy/steps/authorization.ts');
  const services = { clock: systemClock, log: silentLog, name: '', transport: 'stdio' } as const;
  try {
    const part = await openAuthorization({ document }, services);
    await part.close?.();
  } catch (error) {
    if (!(error instanceof SkepError) || error.code !== 'usage/invalid-value') throw error;
    const { code, message, hint } = error;
    throw new SkepError(code, { message: `${where}: ${message}`, hint, cause: error });
  }
}
